package search

import "strings"

// rules are the patterns of one .gitignore file.
type rules struct {
	base  string // the folder that it is in, relative to the top; empty: the top
	rules []rule
}

type rule struct {
	glob
	not    bool // takes what matches in again
	folder bool // for folders only
	name   bool // for the name alone, at any depth
}

// parseRules reads a .gitignore file.
func parseRules(base string, text []byte) rules {
	r := rules{base: base}
	for _, line := range gitLines(text) {
		if rule, ok := parseRule(line); ok {
			r.rules = append(r.rules, rule)
		}
	}
	return r
}

// parseRule reads one line; false: it is no rule.
func parseRule(line string) (rule, bool) {
	var r rule
	if strings.HasPrefix(line, "#") {
		return r, false
	}
	if rest, not := strings.CutPrefix(line, "!"); not {
		r.not, line = true, rest
	}
	line = trimSpaces(line)
	if rest, folder := strings.CutSuffix(line, "/"); folder {
		r.folder, line = true, rest
	}
	if line == "" {
		return r, false
	}
	r.name = !strings.Contains(line, "/")
	r.glob = parseGlob(strings.TrimPrefix(line, "/"), true)
	return r, true
}

// trimSpaces takes spaces off the end that no backslash protects.
func trimSpaces(line string) string {
	end := len(line)
	for end > 0 && line[end-1] == ' ' {
		end--
	}
	slashes := 0
	for slashes < end && line[end-1-slashes] == '\\' {
		slashes++
	}
	if slashes%2 == 1 && end < len(line) {
		end++
	}
	return line[:end]
}

// ignores tells whether the rules of a file decide about a path, relative to
// the top, and how. The last one that matches does.
func (r rules) ignores(path string, folder bool) (ignored, decided bool) {
	rel := path
	if r.base != "" {
		rel = strings.TrimPrefix(path, r.base+"/")
	}
	name := rel[strings.LastIndexByte(rel, '/')+1:]
	for i := len(r.rules) - 1; i >= 0; i-- {
		rule := r.rules[i]
		if rule.folder && !folder {
			continue
		}
		of := rel
		if rule.name {
			of = name
		}
		if rule.match(of) {
			return !rule.not, true
		}
	}
	return false, false
}

// ignored asks the .gitignore files from the innermost outwards.
func ignored(files []rules, path string, folder bool) bool {
	for i := len(files) - 1; i >= 0; i-- {
		if is, decided := files[i].ignores(path, folder); decided {
			return is
		}
	}
	return false
}

// skipped are names of what holds secrets, or the inner life of version control.
// Whoever wants to see inside names it as the path.
var skipped = map[string]bool{
	".git": true, ".hg": true, ".svn": true, ".jj": true, ".bough": true,
	".ssh": true, ".gnupg": true, ".aws": true, ".azure": true, ".kube": true, ".docker": true,
	".env": true, ".netrc": true, ".npmrc": true, ".pypirc": true, ".pgpass": true, ".git-credentials": true,
	"id_rsa": true, "id_dsa": true, "id_ecdsa": true, "id_ed25519": true,
}

// harmless are the ends of names like .env.example that are made to be shared.
var harmless = []string{".example", ".sample", ".template", ".dist"}

// secret tells whether a name is skipped.
func secret(name string) bool {
	name = strings.ToLower(name) // some file systems do not tell the case
	if skipped[name] {
		return true
	}
	if !strings.HasPrefix(name, ".env.") {
		return false
	}
	for _, end := range harmless {
		if strings.HasSuffix(name, end) {
			return false
		}
	}
	return true
}
