package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/boughdev/bough/host/tool"
)

// Paths are the files and folders that a call of a reading or writing tool
// names, absolute and clean but with their symbolic links. A reading tool that
// names none means the folder. known is false when they cannot be told.
func Paths(call tool.Call, spec tool.Spec, folder string) (paths []string, known bool) {
	var input map[string]json.RawMessage
	if json.Unmarshal(call.Input, &input) != nil {
		return nil, false
	}
	for field, value := range input {
		// Go programs, the workspace too, read a field in whatever case.
		if !slices.ContainsFunc(spec.PathFields, func(f string) bool { return strings.EqualFold(f, field) }) {
			continue
		}
		named, ok := names(value)
		if !ok {
			return nil, false
		}
		paths = append(paths, named...)
	}
	if text, ok := patch(input); ok && spec.Effect == tool.EffectWrite {
		named, ok := patchPaths(text)
		if !ok {
			return nil, false
		}
		paths = append(paths, named...)
	}
	if len(paths) == 0 {
		if spec.Effect != tool.EffectRead {
			return nil, false
		}
		paths = []string{folder}
	}
	for i, p := range paths {
		if !filepath.IsAbs(p) {
			// Not Join: "link/../x" must stay what the kernel makes of it.
			paths[i] = folder + string(filepath.Separator) + p
		}
	}
	return paths, true
}

func names(value json.RawMessage) ([]string, bool) {
	var one string
	if json.Unmarshal(value, &one) == nil {
		if one == "" {
			return nil, true
		}
		return []string{one}, true
	}
	var many []string
	err := json.Unmarshal(value, &many)
	return many, err == nil
}

// patch is the text of a patch, which names its files itself.
func patch(input map[string]json.RawMessage) (string, bool) {
	var text string
	for field, value := range input {
		if strings.EqualFold(field, "patchText") && json.Unmarshal(value, &text) == nil && text != "" {
			return text, true
		}
	}
	return "", false
}

// patchPaths are the files that a patch of the "*** Begin Patch" form names. A
// line of that form that is not understood makes all of it unknown.
func patchPaths(text string) ([]string, bool) {
	var paths []string
	for line := range strings.Lines(text) {
		marker, ok := strings.CutPrefix(strings.TrimSpace(line), "***")
		if !ok {
			continue
		}
		verb, path, named := strings.Cut(strings.TrimSpace(marker), ":")
		switch strings.ToLower(strings.Join(strings.Fields(verb), " ")) {
		case "begin patch", "end patch", "end of file":
		case "add file", "update file", "delete file", "move to":
			if path = strings.TrimSpace(path); path == "" || !named {
				return nil, false
			}
			paths = append(paths, path)
		default:
			return nil, false
		}
	}
	return paths, len(paths) > 0
}

// concern is why a path needs a person; empty: it does not.
func concern(path, folder string) string {
	if rel, err := filepath.Rel(folder, path); err == nil && strings.HasPrefix(rel, "~") {
		return rel + " may mean another folder than the session's"
	}
	home, err := Resolve(folder)
	if err != nil {
		return fmt.Sprintf("the session's folder cannot be looked at: %v", err)
	}
	// A tool may tidy the path up before it opens it or leave that to the
	// kernel; "link/../x" is then two different files. Both must be fine.
	for _, way := range []string{path, filepath.Clean(path)} {
		real, err := Resolve(way)
		if err != nil {
			return fmt.Sprintf("%s cannot be looked at: %v", path, err)
		}
		rel, err := filepath.Rel(home, real)
		if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return fmt.Sprintf("%s lies outside the session's folder %s", real, folder)
		}
		if name := protectedPart(rel); name != "" {
			return fmt.Sprintf("%s is protected (%s)", path, name)
		}
	}
	// The name of a link is as telling as where it leads.
	if rel, err := filepath.Rel(folder, filepath.Clean(path)); err == nil {
		if name := protectedPart(rel); name != "" {
			return fmt.Sprintf("%s is protected (%s)", path, name)
		}
	}
	return ""
}

// protected are names of files and folders that hold secrets, or that make
// other programs run something.
var protected = []string{
	".git", ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".env", ".netrc",
	".npmrc", ".pypirc", ".pgpass", ".git-credentials", ".bough",
}

// harmless are endings of .env files that are made to be shared.
var harmless = []string{".example", ".sample", ".template", ".dist"}

func protectedPart(rel string) string {
	for part := range strings.SplitSeq(rel, string(filepath.Separator)) {
		name := strings.ToLower(part) // some file systems do not tell the case
		if slices.Contains(protected, name) {
			return part
		}
		if rest, ok := strings.CutPrefix(name, ".env."); ok && !slices.Contains(harmless, "."+rest) {
			return part
		}
	}
	return ""
}

// Resolve follows the symbolic links of an absolute path as the kernel does;
// what is not there yet stays as it is.
func Resolve(path string) (string, error) {
	const mostLinks = 40 // as Linux
	at, links := string(filepath.Separator), 0
	rest := strings.Split(path, string(filepath.Separator))
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, part)
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			at = next
			continue
		case err != nil:
			return "", err
		case info.Mode()&fs.ModeSymlink == 0:
			at = next
			continue
		}
		if links++; links > mostLinks {
			return "", fmt.Errorf("%s: too many symbolic links", path)
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(target) {
			at = string(filepath.Separator)
		}
		rest = append(strings.Split(target, string(filepath.Separator)), rest...)
	}
	return at, nil
}
