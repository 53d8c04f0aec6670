// Package folder is the way to the files of a session: it confines every path
// to the session's folder, opens nothing that could block, and replaces files
// atomically and only if they are still what they were.
package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// Folder is an open folder. Close it when the call is over: the next one must
// notice that the folder is gone.
type Folder struct {
	root *os.Root
	top  string // what paths in root are relative to: real, or / with outside
	path string // as the session names it
	real string // without symbolic links
}

// Open opens a folder, which must be there. With outside, paths may lead out
// of it; relative ones still begin there.
func Open(path string, outside bool) (*Folder, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("the session's folder %q is not absolute", path)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, gone(path, err)
	}
	f := &Folder{path: filepath.Clean(path), real: real, top: real}
	if outside {
		f.top = "/"
	}
	if info, err := os.Stat(real); err != nil {
		return nil, gone(path, err)
	} else if !info.IsDir() {
		return nil, gone(path, syscall.ENOTDIR)
	}
	if f.root, err = os.OpenRoot(f.top); err != nil {
		return nil, gone(path, err)
	}
	return f, nil
}

// gone says that there is no folder to work in. It is never made again: what
// was in it would seem deleted.
func gone(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the session's folder %s is gone; it is not made again: put it back, or start a session elsewhere", path)
	}
	return fmt.Errorf("open the session's folder %s: %w", path, err)
}

// Close closes the folder.
func (f *Folder) Close() { f.root.Close() }

// Path is the folder without symbolic links.
func (f *Folder) Path() string { return f.real }

// Place is where a file is or may be made. It has no symbolic links, or had
// none when it was found: what is done with it cannot leave the folder, even
// if some come in between.
type Place struct {
	root *os.Root
	rel  string // in root, clean
	Path string // absolute
	Name string // as a person calls it: relative to the folder if it is inside
}

// OutsideError is a path that leads out of the folder.
type OutsideError struct {
	Name   string // as it was given
	Folder string
	Link   string // the symbolic link that leads out; empty: none does
}

// Error says what may be done instead.
func (e *OutsideError) Error() string {
	if e.Link != "" {
		return fmt.Sprintf("%s lies outside the session's folder %s: the symbolic link %s leads out of it", e.Name, e.Folder, e.Link)
	}
	return fmt.Sprintf("%s lies outside the session's folder %s; use a path inside it", e.Name, e.Folder)
}

// mostLinks is how many symbolic links a path may have, as on Linux.
const mostLinks = 40

// Find resolves a path as the kernel would, symbolic links included. What it
// names need not be there.
func (f *Folder) Find(name string) (Place, error) {
	switch {
	case name == "":
		return Place{}, errors.New("the path is empty")
	case strings.ContainsRune(name, 0):
		return Place{}, fmt.Errorf("the path %q has a NUL byte", name)
	case len(name) > 4096:
		return Place{}, fmt.Errorf("the path has %d bytes, at most 4096 are possible", len(name))
	}
	r := resolver{folder: f, name: name}
	if !r.enter(name, true) {
		return Place{}, &OutsideError{Name: name, Folder: f.path}
	}
	if err := r.run(); err != nil {
		return Place{}, err
	}
	rel := path.Join(r.at...)
	return f.place(rel), nil
}

// place is the place of a path in root that is free of links.
func (f *Folder) place(rel string) Place {
	if rel == "" {
		rel = "."
	}
	p := Place{root: f.root, rel: rel, Path: filepath.Join(f.top, rel)}
	p.Name = p.Path
	if inside, ok := within(p.Path, f.real); ok {
		p.Name = inside
	}
	return p
}

// within makes an absolute path relative to a folder that it lies in.
func within(name, folder string) (rel string, ok bool) {
	if folder == "/" {
		return strings.TrimLeft(name, "/"), true
	}
	rest, ok := strings.CutPrefix(name, folder)
	switch {
	case !ok:
		return "", false
	case strings.Trim(rest, "/") == "":
		return ".", true
	case rest[0] != '/':
		return "", false
	}
	return strings.TrimLeft(rest, "/"), true
}

// resolver walks a path part by part.
type resolver struct {
	folder *Folder
	name   string
	at     []string // resolved
	rest   []string // to do
	links  int
	via    string // the last symbolic link that was followed
}

// enter puts a path before what is still to do. first tells that it is the
// path that was given, and not that of a link.
func (r *resolver) enter(name string, first bool) (inside bool) {
	if filepath.IsAbs(name) || first {
		rel := name
		if filepath.IsAbs(name) {
			var ok bool
			for _, top := range []string{r.folder.top, r.folder.path, r.folder.real} {
				if rel, ok = within(name, top); ok {
					break
				}
			}
			if !ok {
				return false
			}
		} else if r.folder.top != r.folder.real {
			rel = r.folder.real + "/" + name
		}
		r.at, name = nil, rel
	}
	r.rest = append(strings.Split(name, "/"), r.rest...)
	return true
}

func (r *resolver) run() error {
	for len(r.rest) > 0 {
		part := r.rest[0]
		r.rest = r.rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if len(r.at) == 0 {
				if r.folder.top == "/" {
					continue
				}
				return &OutsideError{Name: r.name, Folder: r.folder.path, Link: r.via}
			}
			r.at = r.at[:len(r.at)-1]
			continue
		}
		if err := r.step(part); err != nil {
			return err
		}
	}
	return nil
}

// step follows one part.
func (r *resolver) step(part string) error {
	next := append(r.at[:len(r.at):len(r.at)], part)
	rel := path.Join(next...)
	info, err := r.folder.root.Lstat(rel)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		r.at = next // not there yet
		return nil
	case err != nil:
		return fmt.Errorf("look at %s: %w", rel, cause(err))
	case info.Mode()&fs.ModeSymlink == 0:
		r.at = next
		return nil
	}
	if r.links++; r.links > mostLinks {
		return fmt.Errorf("%s leads through more than %d symbolic links", r.name, mostLinks)
	}
	r.via = rel
	target, err := r.folder.root.Readlink(rel)
	if err != nil {
		return fmt.Errorf("follow the symbolic link %s: %w", rel, cause(err))
	}
	if !r.enter(target, false) {
		return &OutsideError{Name: r.name, Folder: r.folder.path, Link: rel}
	}
	return nil
}

// cause takes the operation and the path off an error of package os: our
// messages name them already.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		return link.Err
	}
	return err
}
