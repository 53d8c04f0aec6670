package folder

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// MaxLoad is the largest file that is read into memory to be changed.
const MaxLoad = 128 << 20

// Sum is the SHA-256 of a file's content.
type Sum = [sha256.Size]byte

// KindError is something that is not a regular file.
type KindError struct{ Name, Kind string }

// Error names what it is.
func (e *KindError) Error() string {
	return fmt.Sprintf("%s is %s, not a regular file", e.Name, e.Kind)
}

// SizeError is a file that is too large to be loaded.
type SizeError struct {
	Name string
	Size int64
}

// Error says what may be done instead.
func (e *SizeError) Error() string {
	return fmt.Sprintf("%s has %d MB; at most %d MB can be changed this way: use the shell", e.Name, e.Size>>20, int64(MaxLoad)>>20)
}

// Kind names a kind of file for people; empty: a regular file.
func Kind(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return ""
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}

// Lstat looks at what is at the place; fs.ErrNotExist: nothing.
func (p Place) Lstat() (fs.FileInfo, error) {
	info, err := p.root.Lstat(p.rel)
	if errors.Is(err, syscall.ENOTDIR) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, cause(err))
	}
	return info, nil
}

// Open opens the regular file at the place. Anything else is refused without
// being opened: a named pipe would block, and some devices act when opened.
func (p Place) Open() (*os.File, fs.FileInfo, error) {
	info, err := p.Lstat()
	if err != nil {
		return nil, nil, err
	}
	if kind := Kind(info.Mode()); kind != "" {
		return nil, nil, &KindError{p.Name, kind}
	}
	// It could have become another since; then this does not block.
	file, err := p.root.OpenFile(p.rel, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open %s: %w", p.Name, cause(err))
	}
	if info, err = file.Stat(); err == nil {
		if kind := Kind(info.Mode()); kind != "" {
			err = &KindError{p.Name, kind}
		}
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

// File is a file as it was read.
type File struct {
	Place
	Info fs.FileInfo
	Data []byte
	Sum  Sum
}

// Load reads the regular file at the place, up to MaxLoad.
func (p Place) Load() (*File, error) {
	file, info, err := p.Open()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info.Size() > MaxLoad {
		return nil, &SizeError{p.Name, info.Size()}
	}
	data, err := io.ReadAll(io.LimitReader(file, MaxLoad+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", p.Name, cause(err))
	case len(data) > MaxLoad:
		return nil, &SizeError{p.Name, int64(len(data))}
	}
	return &File{Place: p, Info: info, Data: data, Sum: sha256.Sum256(data)}, nil
}

// sum is the checksum of what is at the place now.
func (p Place) sum() (Sum, error) {
	file, _, err := p.Open()
	if err != nil {
		return Sum{}, err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return Sum{}, fmt.Errorf("read %s: %w", p.Name, cause(err))
	}
	return Sum(hash.Sum(nil)), nil
}

// ReadDir lists the folder at the place, by name. The entries know the names
// and types, and nothing else for certain.
func (p Place) ReadDir() ([]fs.DirEntry, error) {
	confined, err := p.root.OpenFile(p.rel, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open the folder %s: %w", p.Name, cause(err))
	}
	defer confined.Close()
	// Of a file that was opened in a root, package os looks at each entry anew.
	fd, err := unix.FcntlInt(confined.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open the folder %s: %w", p.Name, err)
	}
	dir := os.NewFile(uintptr(fd), p.Path)
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	if err != nil {
		return entries, fmt.Errorf("list the folder %s: %w", p.Name, cause(err))
	}
	return entries, nil
}

// Readlink is where the symbolic link at the place leads.
func (p Place) Readlink() (string, error) {
	target, err := p.root.Readlink(p.rel)
	if err != nil {
		return "", fmt.Errorf("read the link %s: %w", p.Name, cause(err))
	}
	return target, nil
}

// Sub is what has a name in the folder at the place. A symbolic link is not
// followed.
func (p Place) Sub(name string) Place {
	q := Place{root: p.root, rel: name, Path: path.Join(p.Path, name), Name: name}
	if p.rel != "." {
		q.rel = p.rel + "/" + name
	}
	if p.Name != "." {
		q.Name = path.Join(p.Name, name)
	}
	return q
}

// Parent is the folder that the place is in.
func (p Place) Parent() Place {
	q := p
	q.rel = path.Dir(p.rel)
	q.Path = path.Dir(p.Path)
	q.Name = path.Dir(p.Name)
	return q
}

// Base is the last part of the place's path.
func (p Place) Base() string { return path.Base(p.Path) }

// Holds tells whether another place is directly in the folder at this one.
func (p Place) Holds(other Place) bool {
	rest, ok := strings.CutPrefix(other.rel, p.rel+"/")
	if p.rel == "." {
		rest, ok = other.rel, true
	}
	return ok && !strings.Contains(rest, "/")
}
