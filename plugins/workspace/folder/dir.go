package folder

import (
	"fmt"
	"os"
	"syscall"
)

// Dir is an open folder, for whoever looks at many files in it.
type Dir struct {
	root *os.Root
	name string
}

// OpenDir opens the folder at the place.
func (p Place) OpenDir() (*Dir, error) {
	root, err := p.root.OpenRoot(p.rel)
	if err != nil {
		return nil, fmt.Errorf("open the folder %s: %w", p.Name, cause(err))
	}
	return &Dir{root, p.Name}, nil
}

// Close closes the folder.
func (d *Dir) Close() { d.root.Close() }

// Open opens a file that ReadDir called a regular one. If it is another by now
// it is refused, and opening it does not block.
func (d *Dir) Open(name string) (*os.File, error) {
	file, err := d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s in %s: %w", name, d.name, cause(err))
	}
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() {
		return file, nil
	}
	file.Close()
	if err == nil {
		err = &KindError{name, Kind(info.Mode())}
	}
	return nil, err
}
