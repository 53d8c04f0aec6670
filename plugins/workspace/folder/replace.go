package folder

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// ChangedError is a file that is not what it was when it was read.
type ChangedError struct {
	Name string
	How  string // such as: was deleted
}

// Error says what to do about it.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s %s in the meantime, so nothing was written to it: read it again first", e.Name, e.How)
}

// Staged is the new content of a file, on the disk but not in its place yet.
// Either Commit or Discard must be called.
type Staged struct {
	place Place
	old   *File // what it replaces; nil: nothing
	like  *File // what has the mode and the owner for it; nil: the usual ones
	data  []byte
	dir   *os.File
	file  *os.File
	temp  string   // its name in dir; empty: it has none yet
	made  []string // folders that were made for it, outermost first

	// Links is how many other names the replaced file has: they keep the old
	// content.
	Links int
}

// Stage writes data next to the place and makes it durable. old is the file
// that it is to replace, whose mode and owner it gets, or nil where none may
// be; then missing folders are made. Nothing that is there is touched.
func (p Place) Stage(data []byte, old *File) (*Staged, error) {
	return p.stage(&Staged{place: p, old: old, like: old, data: data})
}

// StageAs is Stage for a file that moves: it gets mode and owner of like, and
// nothing may be in its place.
func (p Place) StageAs(data []byte, like *File) (*Staged, error) {
	return p.stage(&Staged{place: p, like: like, data: data})
}

func (p Place) stage(s *Staged) (*Staged, error) {
	err := s.prepare()
	if err == nil {
		err = s.write()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write %s: %w", p.Name, cause(err)), s.Discard())
	}
	return s, nil
}

// prepare opens the folder of the file.
func (s *Staged) prepare() error {
	p := s.place
	if s.old == nil {
		if err := s.makeFolders(path.Dir(p.rel)); err != nil {
			return err
		}
	}
	var err error
	if s.dir, err = p.root.Open(path.Dir(p.rel)); err != nil {
		return err
	}
	if s.old == nil {
		return nil
	}
	// A rename would pass over the permission of the file itself.
	err = unix.Faccessat(int(s.dir.Fd()), p.Base(), unix.W_OK, unix.AT_EACCESS)
	if mode := s.old.Info.Mode().Perm(); mode&0o222 == 0 || errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
		return fmt.Errorf("the file is read-only (mode %04o): make it writable first if it is to be changed", mode)
	}
	if stat, ok := s.old.Info.Sys().(*syscall.Stat_t); ok {
		s.Links = int(stat.Nlink) - 1
	}
	return nil
}

// makeFolders makes the missing ones of a path and remembers which.
func (s *Staged) makeFolders(dir string) error {
	if dir == "." {
		return nil
	}
	err := s.place.root.Mkdir(dir, 0o777)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil // if it is no folder, opening it says so
	case errors.Is(err, fs.ErrNotExist):
		if err := s.makeFolders(path.Dir(dir)); err != nil {
			return err
		}
		err = s.place.root.Mkdir(dir, 0o777)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the folder %s: %w", dir, cause(err))
	}
	if err == nil {
		s.made = append(s.made, dir)
	}
	return nil
}

// unnamed is how a file without a name is opened: a process that is killed
// leaves nothing behind. Not every file system can do it; the tests make all of
// them unable.
var unnamed = unix.O_TMPFILE

// write makes the content durable under no name, or where the file system
// cannot do that, under a temporary one.
func (s *Staged) write() error {
	mode := uint32(0o666) // less the umask
	if s.like != nil {
		mode = 0o600 // until it has the mode of the other
	}
	dir := int(s.dir.Fd())
	fd, err := unix.Openat(dir, ".", unnamed|unix.O_RDWR|unix.O_CLOEXEC, mode)
	if err != nil {
		s.temp = tempName()
		if fd, err = unix.Openat(dir, s.temp, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW, mode); err != nil {
			s.temp = ""
			return err
		}
	}
	s.file = os.NewFile(uintptr(fd), s.place.Path)
	if _, err := s.file.Write(s.data); err != nil {
		return err
	}
	if s.like != nil {
		if err := s.resemble(); err != nil {
			return err
		}
	}
	return s.file.Sync()
}

// resemble gives the new file owner and mode of another. An owner that cannot
// be given is no reason to fail: the content counts.
func (s *Staged) resemble() error {
	info := s.like.Info
	stat, ok := info.Sys().(*syscall.Stat_t)
	if ok && (int(stat.Uid) != os.Geteuid() || int(stat.Gid) != os.Getegid()) {
		if err := s.file.Chown(int(stat.Uid), int(stat.Gid)); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return s.file.Chmod(info.Mode())
}

func tempName() string {
	var b [8]byte
	rand.Read(b[:])
	return fmt.Sprintf(".bough-%x.tmp", b)
}

// Commit puts the content in its place, if what is there is still what it
// replaces, makes that durable, and gives the checksum of the file as it is
// read from the disk again.
func (s *Staged) Commit() (Sum, error) {
	if err := s.unchanged(); err != nil {
		return Sum{}, errors.Join(err, s.Discard())
	}
	if err := s.move(); err != nil {
		return Sum{}, errors.Join(err, s.Discard())
	}
	s.file.Close()
	s.file = nil
	defer s.dir.Close()
	if err := s.dir.Sync(); err != nil {
		return Sum{}, fmt.Errorf("make %s durable: %w", s.place.Name, cause(err))
	}
	made := s.made
	s.made = nil
	for _, dir := range made {
		if err := syncFolder(s.place.root, path.Dir(dir)); err != nil {
			return Sum{}, fmt.Errorf("make the folder %s durable: %w", dir, cause(err))
		}
	}
	now, err := s.place.Load()
	switch {
	case err != nil:
		return Sum{}, fmt.Errorf("%s was written but cannot be read again: %w", s.place.Name, err)
	case !bytes.Equal(now.Data, s.data):
		return Sum{}, &ChangedError{s.place.Name, "was changed by another program as soon as it was written"}
	}
	return now.Sum, nil
}

// move gives the content its name.
func (s *Staged) move() error {
	p, dir := s.place, int(s.dir.Fd())
	ours := "/proc/self/fd/" + strconv.Itoa(int(s.file.Fd()))
	var err error
	switch {
	case s.old == nil && s.temp == "":
		// A link, unlike a rename, does not replace what came in between.
		err = unix.Linkat(unix.AT_FDCWD, ours, dir, p.Base(), unix.AT_SYMLINK_FOLLOW)
	case s.old == nil:
		err = unix.Linkat(dir, s.temp, dir, p.Base(), 0)
		if err == nil {
			err = unix.Unlinkat(dir, s.temp, 0)
		}
	default:
		if s.temp == "" {
			temp := tempName()
			if err = unix.Linkat(unix.AT_FDCWD, ours, dir, temp, unix.AT_SYMLINK_FOLLOW); err != nil {
				break
			}
			s.temp = temp
		}
		err = unix.Renameat(dir, s.temp, dir, p.Base())
	}
	if errors.Is(err, unix.EEXIST) {
		return &ChangedError{p.Name, "was made by another program"}
	}
	if err != nil {
		return fmt.Errorf("put %s in its place: %w", p.Name, err)
	}
	s.temp = ""
	return nil
}

// unchanged tells whether the place is still as it was.
func (s *Staged) unchanged() error { return s.place.unchanged(s.old) }

// sureSize is up to which size a file is read again to see whether it has
// changed; of larger ones the times and the size must do.
const sureSize = 4 << 20

func (p Place) unchanged(old *File) error {
	info, err := p.Lstat()
	switch {
	case errors.Is(err, fs.ErrNotExist) && old == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return &ChangedError{p.Name, "was deleted"}
	case err != nil:
		return err
	case old == nil:
		return &ChangedError{p.Name, "was made by another program"}
	}
	if info.Size() > sureSize && same(info, old.Info) {
		return nil
	}
	if sum, err := p.sum(); err != nil {
		return err
	} else if sum != old.Sum {
		return &ChangedError{p.Name, "was changed"}
	}
	return nil
}

// same tells whether two looks at a file saw the same one, unwritten.
func same(a, b fs.FileInfo) bool {
	x, ok1 := a.Sys().(*syscall.Stat_t)
	y, ok2 := b.Sys().(*syscall.Stat_t)
	return ok1 && ok2 && x.Dev == y.Dev && x.Ino == y.Ino && x.Size == y.Size && x.Mtim == y.Mtim && x.Ctim == y.Ctim
}

// Discard forgets the new content and what was made for it. It does nothing
// after Commit.
func (s *Staged) Discard() error {
	var errs []error
	if s.temp != "" {
		errs = append(errs, unix.Unlinkat(int(s.dir.Fd()), s.temp, 0))
		s.temp = ""
	}
	if s.file != nil {
		s.file.Close()
		s.file = nil
	}
	if s.dir != nil {
		s.dir.Close()
	}
	for i := len(s.made) - 1; i >= 0; i-- {
		// One that another program uses by now stays.
		if err := s.place.root.Remove(s.made[i]); err != nil && !errors.Is(err, syscall.ENOTEMPTY) {
			errs = append(errs, err)
		}
	}
	s.made = nil
	return errors.Join(errs...)
}

// Remove deletes a file that was read, if it is still the same, and makes that
// durable.
func (f *File) Remove() error {
	if err := f.unchanged(f); err != nil {
		return err
	}
	if err := f.root.Remove(f.rel); err != nil {
		return fmt.Errorf("delete %s: %w", f.Name, cause(err))
	}
	if err := syncFolder(f.root, path.Dir(f.rel)); err != nil {
		return fmt.Errorf("make the deletion of %s durable: %w", f.Name, cause(err))
	}
	return nil
}

func syncFolder(root *os.Root, name string) error {
	dir, err := root.Open(name)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
