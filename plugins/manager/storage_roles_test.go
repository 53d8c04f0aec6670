package manager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/host/store/memstore"
	"github.com/boughdev/bough/plugins/badger"
	"github.com/boughdev/bough/plugins/sdk"
)

// memory is a backend without a disk.
type memory struct {
	*memstore.Store
}

func (memory) Close() error { return nil }

func (memory) Maintain(_ context.Context, op store.Operation, progress func(string)) (store.Report, error) {
	if op != store.Stats {
		return store.Report{}, errors.New("memory needs no maintenance")
	}
	progress("counting")
	return store.Report{Figures: []store.Figure{{Name: "keys", Value: 7}}, Actions: []string{"counted"}}, nil
}

// Backup writes a line for each entry.
func (m memory) Backup(ctx context.Context, w io.Writer) error {
	out := json.NewEncoder(w)
	for e, err := range m.Scan(ctx, store.Range{}) {
		if err != nil {
			return err
		}
		if err := out.Encode(e); err != nil {
			return err
		}
	}
	return nil
}

func (m memory) Restore(ctx context.Context, r io.Reader) (n uint64, err error) {
	for in := json.NewDecoder(r); ; n++ {
		var e store.Entry
		if err := in.Decode(&e); err == io.EOF {
			return n, nil
		} else if err != nil {
			return n, err
		}
		var b store.Batch
		b.Put(e.Key, e.Value)
		if _, err := m.Commit(ctx, b); err != nil {
			return n, err
		}
	}
}

// damaged refuses everything but its maintenance.
type damaged struct{ memory }

var errTooth = fmt.Errorf("%w: 000007.sst has a hole", store.ErrDamaged)

func (damaged) Get(context.Context, ...[]byte) ([]store.Entry, error) { return nil, errTooth }

func (damaged) Commit(context.Context, store.Batch) (uint64, error) { return 0, errTooth }

func (damaged) Acquire(context.Context, string, store.Holder) (store.Lease, error) {
	return nil, errTooth
}

func (damaged) Scan(context.Context, store.Range) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) { yield(store.Entry{}, errTooth) }
}

func (d damaged) Info(context.Context) (store.Info, error) {
	return store.Info{Backend: "damaged", Refusal: errTooth.Error()}, nil
}

// poisoned dies of one key.
type poisoned struct{ memory }

func (p poisoned) Commit(ctx context.Context, b store.Batch) (uint64, error) {
	if string(b.Ops[0].Key) == "poison" {
		panic("out of cheese")
	}
	return p.memory.Commit(ctx, b)
}

// endless yields entries of as many bytes as the start of the range says,
// without any work, so that what a scan costs is the wire.
type endless struct{ memory }

func (endless) Scan(_ context.Context, r store.Range) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		size, err := strconv.Atoi(string(r.Start))
		value := make([]byte, size)
		for i := 0; i < r.Limit && yield(store.Entry{Key: fmt.Appendf(nil, "k/%08d", i), Value: value, Version: 1}, err); i++ {
			continue
		}
	}
}

type opener func(ctx context.Context) (sdk.Backend, error)

// backends open a store in a state directory.
var backends = map[string]func(dir string) opener{
	"memory": func(string) opener {
		return func(context.Context) (sdk.Backend, error) { return memory{memstore.New()}, nil }
	},
	"damaged": func(string) opener {
		return func(context.Context) (sdk.Backend, error) { return damaged{memory{memstore.New()}}, nil }
	},
	"endless": func(string) opener {
		return func(context.Context) (sdk.Backend, error) { return endless{memory{memstore.New()}}, nil }
	},
	"poisoned": func(string) opener {
		return func(context.Context) (sdk.Backend, error) { return poisoned{memory{memstore.New()}}, nil }
	},
	"badger": func(dir string) opener {
		return func(ctx context.Context) (sdk.Backend, error) {
			return badger.Open(ctx, filepath.Join(dir, "store"), badger.Options{})
		}
	},
	"refuses": func(string) opener {
		return func(context.Context) (sdk.Backend, error) { return nil, errors.New("the directory is read-only") }
	},
	"dies": func(string) opener {
		return func(context.Context) (sdk.Backend, error) { panic("out of cheese") }
	},
	"slow": func(string) opener {
		return func(ctx context.Context) (sdk.Backend, error) {
			time.Sleep(time.Second)
			return memory{memstore.New()}, nil
		}
	},
}

// storageRole serves DIR with a backend: MARK DIR BACKEND LINGER.
func storageRole(args []string) error {
	linger, err := time.ParseDuration(args[3])
	if err != nil {
		return err
	}
	return sdk.ServeStorage(context.Background(), sdk.StorageServer{
		StateDir: args[1], Linger: linger, Open: backends[args[2]](args[1]),
	})
}

// holderRole attaches, takes a lease, tells its token and waits:
// MARK DIR BACKEND LINGER LEASE.
func holderRole(args []string) error {
	s, err := attachAs(args)
	if err != nil {
		return err
	}
	lease, err := s.Acquire(context.Background(), args[4], store.Holder{PID: os.Getpid(), Program: "holder", Since: time.Now()})
	if err != nil {
		return err
	}
	fmt.Println(lease.Token())
	waitForEOF()
	return nil
}

// clientRole attaches, commits one batch and reads it: MARK DIR BACKEND LINGER.
func clientRole(args []string) error {
	s, err := attachAs(args)
	if err != nil {
		return err
	}
	key := []byte("client/" + strconv.Itoa(os.Getpid()))
	var b store.Batch
	b.Put(key, []byte("here"))
	if _, err := s.Commit(context.Background(), b); err != nil {
		return err
	}
	entries, err := s.Get(context.Background(), key)
	if err != nil {
		return err
	}
	if string(entries[0].Value) != "here" {
		return fmt.Errorf("read %q", entries[0].Value)
	}
	return s.Close()
}

func attachAs(args []string) (*Storage, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return AttachStorage(context.Background(), StorageOptions{
		StateDir: args[1], Command: append([]string{path, "as", "storage"}, args[:4]...),
		Env: childEnv, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
}
