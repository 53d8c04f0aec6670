package policy_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/boughdev/bough/host/policy"
	"github.com/boughdev/bough/host/policy/shellline"
)

// ruleSet makes rules of lines: the effect and the pattern.
func ruleSet(t testing.TB, lines ...string) *policy.Rules {
	t.Helper()
	r := &policy.Rules{}
	for _, l := range lines {
		effect, pattern, _ := strings.Cut(l, " ")
		p, err := policy.ParsePattern(pattern)
		if err != nil {
			t.Fatal(err)
		}
		o := map[string]policy.Outcome{"allow": policy.Allow, "ask": policy.Ask, "deny": policy.Deny}[effect]
		r.List = append(r.List, policy.Rule{Effect: o, Pattern: p, Origin: "the test"})
	}
	return r
}

// shellRules are the rules that the table is about.
var shellRules = []string{
	"allow go test *", "allow go vet ./...", "allow git status", "allow git log *", "allow git push *", "ask git push --force *",
	"allow make *", "ask make install", "allow ls *", "allow cat *", "allow grep *", "allow wc *", "allow head *", "allow sort *", "allow cd *",
	"allow rm -i *", "allow find *", "allow env", "allow npm test", "allow npm run build *", "allow bash scripts/check.sh *",
	"deny rm -rf *", "deny shutdown *", "deny git reset --hard *", "deny npm publish *", "deny curl *", "ask cat secrets *",
	"allow tool run", "ask tool run", "deny forbidden", "allow python3 -m pytest *", "allow ssh build make *",
}

func TestLinesAgainstRules(t *testing.T) {
	rules := ruleSet(t, shellRules...)
	n := 0
	table, err := os.ReadFile("testdata/lines.txt")
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range strings.Split(string(table), "\n") {
		if row == "" || strings.HasPrefix(row, "# ") {
			continue
		}
		cells := strings.SplitN(row, " | ", 3)
		if len(cells) != 3 {
			t.Fatalf("line %d of the table has %d cells", i+1, len(cells))
		}
		n++
		want, reason, line := strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1]), strings.NewReplacer(`\n`, "\n", `\\`, `\`).Replace(cells[2])
		v := rules.Shell(shellline.Read(line), t.TempDir())
		if v.Outcome.String() != want || !strings.Contains(v.Reason, reason) {
			t.Errorf("line %d: %s\nis %s because %s\nwant %s because ..%s..", i+1, line, v.Outcome, v.Reason, want, reason)
		}
	}
	if n < 150 {
		t.Errorf("the table has %d lines", n)
	}
}

func TestALinkToAForbiddenProgramIsForbidden(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "shutdown")
	for _, err := range []error{
		os.WriteFile(program, nil, 0o700), os.Symlink(program, filepath.Join(dir, "ls")), os.Symlink("ls", filepath.Join(dir, "two")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	rules := ruleSet(t, "deny shutdown *", "allow ./ls *")
	for _, line := range []string{"./ls now", "./two", program, "./two | cat"} {
		if v := rules.Shell(shellline.Read(line), dir); v.Outcome != policy.Deny {
			t.Errorf("%s is %s because %s", line, v.Outcome, v.Reason)
		}
	}
}

func TestClosedRulesDenyWhatNoneAllows(t *testing.T) {
	rules := ruleSet(t, "allow ls *", "ask make")
	rules.Closed = true
	for line, want := range map[string]policy.Outcome{
		"ls -l": policy.Allow, "make": policy.Ask, "touch x": policy.Deny, "ls; touch x": policy.Deny, "echo x": policy.Allow, "rm x": policy.Deny,
	} {
		if v := rules.Shell(shellline.Read(line), "/"); v.Outcome != want {
			t.Errorf("%s is %s because %s", line, v.Outcome, v.Reason)
		}
	}
}

func TestPatternsThatAreRefused(t *testing.T) {
	for pattern, want := range map[string]string{
		"": "at least the name", "*": "star alone", "a b c d e f g h i": "at most 8 words", strings.Repeat("a", 257): "at most 256 bytes",
		"ls *.go": "cannot be used", "a; b": "cannot be used", "a $x": "cannot be used", "a * b": "cannot be used", "a 'b'": "cannot be used",
		"a\\ b": "cannot be used", "é": "cannot be used", "a|b": "cannot be used", "a >b": "cannot be used", "a#": "cannot be used", "~": "cannot be used",
	} {
		if _, err := policy.ParsePattern(pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want ..%s..", pattern, err, want)
		}
	}
}

// FuzzNoMutationOfADeniedCommandIsAllowed changes lines that are denied and
// looks whether one of them is allowed while bash would still run the command.
// What is allowed must be covered word for word, so it is enough that none of
// its commands is a denied one.
func FuzzNoMutationOfADeniedCommandIsAllowed(f *testing.F) {
	for _, s := range []string{"rm -rf x", "ls; rm -rf x", "git log $(rm -rf x)", "make A=`rm -rf x`", "cat x | xargs rm -rf", "env rm -rf x", "ls && \\rm -rf x", "cat <<< $(shutdown)"} {
		f.Add(s, uint64(0))
		f.Add(s, uint64(7))
	}
	rules := ruleSet(f, shellRules...)
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		line := mutate(text, rand.New(rand.NewPCG(seed, 1)))
		v := rules.Shell(shellline.Read(line), "/")
		if v.Outcome != policy.Allow {
			return
		}
		// An independent reading: nothing that makes bash do more than run
		// plain words may be in a line that is allowed outside of quotes.
		bare := outsideQuotes(line)
		if substitution.MatchString(bare) {
			t.Errorf("%q is allowed, and has a substitution", line)
		}
		for _, segment := range strings.FieldsFunc(bare, func(r rune) bool { return strings.ContainsRune(";&|\n(){}!", r) }) {
			words := strings.Fields(segment)
			if len(words) > 1 && words[0] == "rm" && words[1] == "-rf" || len(words) > 0 && words[0] == "shutdown" {
				t.Errorf("%q is allowed: %s", line, v.Reason)
			}
		}
	})
}

// substitution is a backquote, or a dollar that means something.
var substitution = regexp.MustCompile("`|\\$[A-Za-z0-9_({\\[@*#?$!-]")

// mutate puts pieces that mean something to bash at random places.
func mutate(text string, r *rand.Rand) string {
	pieces := []string{" ", ";", "&&", "|", "\n", "$(", ")", "`", "'", "\"", "\\", "{", "}", "&", ">x", "<(", "env ", "ls ", "make ", "<<< ", "#", "!", "time ", "\t"}
	for range r.IntN(4) {
		at := r.IntN(len(text) + 1)
		text = text[:at] + pieces[r.IntN(len(pieces))] + text[at:]
	}
	return text
}

// outsideQuotes is what of a line stands outside of single quotes, comments
// and escapes. It is deliberately simpler than a shell.
func outsideQuotes(line string) string {
	var b strings.Builder
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\':
			i++
			b.WriteByte(1)
		case c == '\'':
			end := strings.IndexByte(line[i+1:], '\'')
			if end < 0 {
				return b.String()
			}
			i += end + 1
			b.WriteByte(1)
		case c == '"':
			b.WriteByte('"')
			for i++; i < len(line) && line[i] != '"'; i++ {
				switch line[i] {
				case '\\':
					i++
				case '$', '`':
					b.WriteByte(line[i])
				}
			}
		case c == '#' && (i == 0 || strings.IndexByte(" \t\n;&|()", line[i-1]) >= 0):
			end := strings.IndexByte(line[i:], '\n')
			if end < 0 {
				return b.String()
			}
			i += end - 1
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
