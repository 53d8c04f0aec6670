package outputs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// maxID is the longest id, its number included.
const maxID = 64

// base is the id of a producer's first output: output-file-grep of file_grep,
// output of nothing.
func base(producer string) string {
	var b strings.Builder
	b.WriteString("output")
	gap := true
	for _, r := range strings.ToLower(producer) {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') {
			gap = true
			continue
		}
		if gap {
			b.WriteByte('-')
			gap = false
		}
		b.WriteRune(r)
	}
	return strings.TrimRight(b.String()[:min(b.Len(), maxID)], "-")
}

// numbered is the id of the nth output of a base: base, base-2, base-3.
func numbered(base string, n int) string {
	if n < 2 {
		return base
	}
	suffix := "-" + strconv.Itoa(n)
	return strings.TrimRight(base[:min(len(base), maxID-len(suffix))], "-") + suffix
}

// allocate makes the file of a new output. The file system decides who gets an
// id, so processes need not know of each other. A number is not used again
// while a higher one is there: what was removed is not mistaken for what came
// later.
func (s *Store) allocate(root *os.Root, session, producer string) (*os.File, string, error) {
	base := base(producer)
	key := session + "/" + base
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.last[key] + 1
	for looked := false; ; n++ {
		id := numbered(base, n)
		file, err := root.OpenFile(id, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			s.last[key] = n
			return file, id, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, "", fmt.Errorf("make a file for output %s of session %s: %w", id, session, err)
		}
		if !looked {
			looked = true
			newest, err := highest(root, base)
			if err != nil {
				return nil, "", fmt.Errorf("list the outputs of session %s: %w", session, err)
			}
			n = max(n, newest)
		}
	}
}

// highest is the highest number of a base that is in use.
func highest(root *os.Root, base string) (int, error) {
	all, err := names(root)
	if err != nil {
		return 0, err
	}
	top := 0
	for _, name := range all {
		i := strings.LastIndexByte(name, '-')
		if n, err := strconv.Atoi(name[i+1:]); err == nil && name == numbered(base, n) {
			top = max(top, n)
		}
	}
	return top, nil
}

// link makes the file from also available as to. What cannot be linked is
// copied.
func link(top *os.Root, from, to string) error {
	err := top.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
		return nil
	}
	source, err := top.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := top.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	if err == nil {
		err = target.Sync()
	}
	if closing := target.Close(); err == nil {
		err = closing
	}
	if err != nil {
		err = errors.Join(err, top.Remove(to))
	}
	return err
}
