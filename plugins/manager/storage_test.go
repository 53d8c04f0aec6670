package manager

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/plugins/api/storagepb"
	"github.com/boughdev/bough/plugins/wire/rendezvous"
)

// storageOptions starts a storage process of the test binary in a new state
// directory.
func storageOptions(t testing.TB, backend, linger string) StorageOptions {
	dir := t.TempDir()
	return StorageOptions{
		StateDir: dir, Logger: testLogger(t), Env: childEnv,
		Command: []string{self(t), "as", "storage", "mark-" + t.Name(), dir, backend, linger},
	}
}

// attach attaches to a storage process that is gone, with everything else, at
// the end of the test.
func attach(t testing.TB, o StorageOptions) *Storage {
	t.Helper()
	s, err := AttachStorage(timeout(t, 20*time.Second), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// attachNew is attach to a new state directory.
func attachNew(t *testing.T, backend string) (*Storage, StorageOptions) {
	t.Helper()
	o := storageOptions(t, backend, "50ms")
	leaveNothing(t, "mark-"+t.Name())
	return attach(t, o), o
}

func put(key, value string) store.Batch {
	var b store.Batch
	b.Put([]byte(key), []byte(value))
	return b
}

// storagePID is the process that the state directory names.
func storagePID(t testing.TB, o StorageOptions) int {
	t.Helper()
	a, err := rendezvous.Read(o.StateDir)
	if err != nil {
		t.Fatal(err)
	}
	return a.Process.PID
}

func TestStorageAnswers(t *testing.T) {
	s, o := attachNew(t, "memory")
	ctx := timeout(t, 20*time.Second)
	v, err := s.Commit(ctx, put("a/1", "one"))
	if err != nil || v == 0 {
		t.Fatal(v, err)
	}
	b := put("a/2", "two")
	b.Require([]byte("a/1"), v+1)
	conflict := (*store.ConflictError)(nil)
	if _, err := s.Commit(ctx, b); !errors.As(err, &conflict) || conflict.Version != v || string(conflict.Key) != "a/1" {
		t.Errorf("got %v, want a conflict at version %d", err, v)
	}
	got, err := s.Get(ctx, []byte("a/1"), []byte("none"))
	if err != nil || string(got[0].Value) != "one" || got[0].Version != v || got[1].Version != 0 || got[1].Value != nil {
		t.Errorf("got %+v, %v", got, err)
	}
	info, err := s.Info(ctx)
	if err != nil || info.Backend != "memory" || info.PID != storagePID(t, o) {
		t.Errorf("got %+v, %v", info, err)
	}
	for _, name := range []string{"storage.address", "storage.sock", "logs/storage.log"} {
		info, err := os.Stat(filepath.Join(o.StateDir, name))
		if err != nil || name != "storage.sock" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

func TestLimitsAreCheckedBeforeSending(t *testing.T) {
	s := newStorage(func(context.Context) (*link, error) { return nil, errors.New("nothing may be sent") }, time.Second, "", testLogger(t))
	defer s.Close()
	limit := (*store.LimitError)(nil)
	if _, err := s.Commit(t.Context(), put("a", strings.Repeat("x", store.MaxValueBytes+1))); !errors.As(err, &limit) {
		t.Errorf("got %v", err)
	}
}

// TestAnswersThatAreTooLong are asked for in parts.
func TestAnswersThatAreTooLong(t *testing.T) {
	small := &smallAnswers{most: 2}
	s := newStorage(func(context.Context) (*link, error) {
		return &link{calls: small, dead: make(chan struct{})}, nil
	}, time.Second, "", testLogger(t))
	defer s.Close()
	var keys [][]byte
	for i := range 9 {
		keys = append(keys, []byte{byte(i)})
	}
	got, err := s.Get(t.Context(), keys...)
	if err != nil || len(got) != len(keys) {
		t.Fatalf("%d entries, %v", len(got), err)
	}
	for i, e := range got {
		if !bytes.Equal(e.Key, keys[i]) {
			t.Errorf("entry %d is of key %x", i, e.Key)
		}
	}
	small.most = 0
	if _, err := s.Get(t.Context(), keys...); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("one that is too long by itself: %v", err)
	}
}

// smallAnswers fails like gRPC when an answer would be too long.
type smallAnswers struct {
	storagepb.StorageClient
	most int
}

func (s *smallAnswers) Get(_ context.Context, request *storagepb.GetRequest, _ ...grpc.CallOption) (*storagepb.GetResponse, error) {
	if len(request.GetKeys()) > s.most {
		return nil, status.Error(codes.ResourceExhausted, "trying to send message larger than max")
	}
	out := &storagepb.GetResponse{}
	for _, k := range request.GetKeys() {
		out.Entries = append(out.Entries, &storagepb.Entry{Key: k, Version: 1})
	}
	return out, nil
}

func TestScansAndTheirEnd(t *testing.T) {
	s, _ := attachNew(t, "memory")
	ctx := timeout(t, 20*time.Second)
	const n = 3000
	for i := 0; i < n; i += 1000 {
		var b store.Batch
		for j := i; j < i+1000; j++ {
			b.Put(fmt.Appendf(nil, "k/%05d", j), bytes.Repeat([]byte{byte(j)}, 500))
		}
		if _, err := s.Commit(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	seen := 0
	for e, err := range s.Scan(ctx, store.Prefix([]byte("k/"))) {
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("k/%05d", seen); string(e.Key) != want || len(e.Value) != 500 || e.Value[0] != byte(seen) {
			t.Fatalf("entry %d is %s", seen, e.Key)
		}
		seen++
	}
	if seen != n {
		t.Errorf("%d entries, want %d", seen, n)
	}
	for e, err := range s.Scan(ctx, store.Range{Reverse: true, KeysOnly: true, Limit: 1}) {
		if err != nil || string(e.Key) != "k/02999" || e.Value != nil {
			t.Errorf("the last key: %+v, %v", e, err)
		}
	}
	for range s.Scan(ctx, store.Range{}) {
		break
	}
	ended, end := context.WithCancel(ctx)
	end()
	for _, err := range s.Scan(ended, store.Range{}) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a scan with an ended context: %v", err)
		}
	}
}

func TestWatchFromTheMomentItIsReady(t *testing.T) {
	s, _ := attachNew(t, "memory")
	ctx := timeout(t, 20*time.Second)
	ready := func() {
		if _, err := s.Commit(ctx, put("w/1", "one")); err != nil {
			t.Error(err)
		}
	}
	for event, err := range s.Watch(ctx, []byte("w/"), ready) {
		if err != nil || len(event.Changes) != 1 || string(event.Changes[0].Key) != "w/1" {
			t.Errorf("got %+v, %v", event, err)
		}
		break
	}
}

func TestMaintenance(t *testing.T) {
	s, _ := attachNew(t, "memory")
	ctx := timeout(t, 20*time.Second)
	var told []string
	report, err := s.Maintain(ctx, store.Stats, func(line string) { told = append(told, line) })
	if err != nil || len(report.Figures) != 1 || report.Figures[0].Value != 7 || len(told) != 1 {
		t.Errorf("got %+v, %v, %q", report, err, told)
	}
	if _, err := s.Maintain(ctx, store.Check, nil); err == nil || err.Error() != "memory needs no maintenance" {
		t.Errorf("got %v", err)
	}
	for i := range 10 {
		if _, err := s.Commit(ctx, put(fmt.Sprint("key", i), strings.Repeat("x", 100<<10))); err != nil {
			t.Fatal(err)
		}
	}
	var backup bytes.Buffer
	if err := s.Backup(ctx, &backup); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Restore(ctx, bytes.NewReader(backup.Bytes())); err != nil || n != 10 {
		t.Errorf("restored %d, %v", n, err)
	}
	half := io.MultiReader(bytes.NewReader(backup.Bytes()[:backup.Len()/2]), failing{})
	if n, err := s.Restore(ctx, half); err == nil || !strings.Contains(err.Error(), "the tape is torn") {
		t.Errorf("half a backup: %d, %v", n, err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the tape is torn") }

func TestDamagedStoreCanBeAttachedTo(t *testing.T) {
	s, _ := attachNew(t, "damaged")
	ctx := timeout(t, 20*time.Second)
	_, get := s.Get(ctx, []byte("a"))
	_, commit := s.Commit(ctx, put("a", "b"))
	_, acquire := s.Acquire(ctx, "l", store.Holder{})
	for name, err := range map[string]error{"get": get, "commit": commit, "acquire": acquire} {
		if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), "000007.sst has a hole") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for _, err := range s.Scan(ctx, store.Range{}) {
		if !errors.Is(err, store.ErrDamaged) {
			t.Errorf("scan: got %v", err)
		}
	}
	if info, err := s.Info(ctx); err != nil || !strings.Contains(info.Refusal, "hole") {
		t.Errorf("got %+v, %v", info, err)
	}
	if _, err := s.Maintain(ctx, store.Stats, nil); err != nil {
		t.Errorf("maintenance: %v", err)
	}
}

func TestStorageThatCannotStart(t *testing.T) {
	for backend, want := range map[string]string{
		"refuses": "the directory is read-only",
		"dies":    "panic: out of cheese",
	} {
		t.Run(backend, func(t *testing.T) {
			leaveNothing(t, "mark-"+t.Name())
			o := storageOptions(t, backend, "50ms")
			_, err := AttachStorage(timeout(t, 20*time.Second), o)
			if err == nil || !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
			if backend == "dies" && !strings.Contains(err.Error(), o.StateDir+"/logs/storage.log") {
				t.Errorf("the log is not named: %v", err)
			}
		})
	}
	t.Run("slow", func(t *testing.T) {
		leaveNothing(t, "mark-"+t.Name())
		o := storageOptions(t, "slow", "50ms")
		o.OpenTimeout = 100 * time.Millisecond
		if _, err := AttachStorage(timeout(t, 20*time.Second), o); err == nil || !strings.Contains(err.Error(), "was not ready within 100ms") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("nothing", func(t *testing.T) {
		o := storageOptions(t, "memory", "50ms")
		o.Command[0] = filepath.Join(o.StateDir, "nothing")
		if _, err := AttachStorage(timeout(t, 20*time.Second), o); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("got %v", err)
		}
	})
}

func TestLongStateDirectory(t *testing.T) {
	o := storageOptions(t, "memory", "50ms")
	o.StateDir = filepath.Join(o.StateDir, strings.Repeat("x", 150))
	o.Command[4] = o.StateDir
	t.Setenv("TMPDIR", o.StateDir)
	t.Setenv("XDG_RUNTIME_DIR", "")
	leaveNothing(t, "mark-"+t.Name())
	s := attach(t, o)
	if _, err := s.Commit(timeout(t, 10*time.Second), put("a", "b")); err != nil {
		t.Fatal(err)
	}
	a, err := rendezvous.Read(o.StateDir)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	within(t, 5*time.Second, "the socket is removed", func() bool { _, err := os.Stat(a.Socket); return err != nil })
}

func TestStorageLeavesAfterTheLastConnection(t *testing.T) {
	o := storageOptions(t, "memory", "200ms")
	leaveNothing(t, "mark-"+t.Name())
	first, second := attach(t, o), attach(t, o)
	pid := storagePID(t, o)
	first.Close()
	if _, err := second.Commit(timeout(t, 10*time.Second), put("a", "b")); err != nil {
		t.Fatal(err)
	}
	second.Close()
	// One that comes while it lingers keeps it.
	third := attach(t, o)
	if got, err := third.Get(timeout(t, 10*time.Second), []byte("a")); err != nil || string(got[0].Value) != "b" || storagePID(t, o) != pid {
		t.Errorf("another process answered: %+v, %v", got, err)
	}
	third.Close()
	within(t, 5*time.Second, "the process leaves", func() bool { return !alive(pid) })
	left, _ := filepath.Glob(filepath.Join(o.StateDir, "storage.*"))
	for _, path := range left {
		if !strings.HasSuffix(path, ".lock") {
			t.Errorf("%s is left", path)
		}
	}
	// And the next one starts the next process.
	fourth := attach(t, o)
	if got, err := fourth.Get(timeout(t, 10*time.Second), []byte("a")); err != nil || got[0].Version != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestLeavingAndComing: hosts that come at the moment of the leaving lose
// nothing but time.
func TestLeavingAndComing(t *testing.T) {
	o := storageOptions(t, "memory", "1ms")
	leaveNothing(t, "mark-"+t.Name())
	for i := range 30 {
		s, err := AttachStorage(timeout(t, 20*time.Second), o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Commit(timeout(t, 10*time.Second), put("a", "b")); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(i%6) * time.Millisecond / 2) // vary the moment, not wait for it
	}
}

func TestTwentyHostsAtOnce(t *testing.T) {
	mark := "mark-" + t.Name()
	leaveNothing(t, mark)
	o := storageOptions(t, "memory", "500ms")
	began := time.Now()
	var hosts []*exec.Cmd
	for range 20 {
		cmd := exec.Command(self(t), "as", "client", mark, o.StateDir, "memory", "500ms")
		cmd.Stderr = &testWriter{t: t}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, cmd)
	}
	for _, cmd := range hosts {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("20 hosts took %s", time.Since(began))
	log, err := os.ReadFile(filepath.Join(o.StateDir, "logs", "storage.log"))
	if n := strings.Count(string(log), "the storage process serves"); err != nil || n != 1 {
		t.Errorf("%d storage processes served, %v:\n%s", n, err, log)
	}
}

// TestStarterIsKilled: the process that it started serves the others.
func TestStarterIsKilled(t *testing.T) {
	mark := "mark-" + t.Name()
	o := storageOptions(t, "slow", "50ms")
	leaveNothing(t, mark)
	starter := exec.Command(self(t), "as", "client", mark, o.StateDir, "slow", "50ms")
	if err := starter.Start(); err != nil {
		t.Fatal(err)
	}
	within(t, 5*time.Second, "the storage process starts", func() bool { return len(processesOf("storage\x00"+mark)) > 0 })
	kill(t, starter.Process.Pid, syscall.SIGKILL)
	starter.Wait()
	s := attach(t, o)
	if _, err := s.Commit(timeout(t, 10*time.Second), put("a", "b")); err != nil {
		t.Error(err)
	}
	log, err := os.ReadFile(filepath.Join(o.StateDir, "logs", "storage.log"))
	if n := strings.Count(string(log), "the storage process serves"); err != nil || n != 1 {
		t.Errorf("%d storage processes served, %v:\n%s", n, err, log)
	}
}

func TestStaleAndForgedAddresses(t *testing.T) {
	for name, forge := range map[string]func(t *testing.T, o StorageOptions){
		"half written": func(t *testing.T, o StorageOptions) {
			if err := os.WriteFile(filepath.Join(o.StateDir, "storage.address"), []byte(`{"protocol":1,"pro`), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"of a dead process": func(t *testing.T, o StorageOptions) {
			a, err := rendezvous.New(o.StateDir)
			if err != nil {
				t.Fatal(err)
			}
			a.Process.PID = 1 // it lives, and is no storage process
			if err := a.Write(o.StateDir); err != nil {
				t.Fatal(err)
			}
		},
		"killed": func(t *testing.T, o StorageOptions) {
			s := attach(t, o)
			pid := storagePID(t, o)
			s.Close()
			kill(t, pid, syscall.SIGKILL)
			within(t, 5*time.Second, "it is dead", func() bool { return !alive(pid) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := storageOptions(t, "memory", "50ms")
			leaveNothing(t, "mark-"+t.Name())
			forge(t, o)
			s := attach(t, o)
			if _, err := s.Commit(timeout(t, 10*time.Second), put("a", "b")); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWrongTokenIsRefused(t *testing.T) {
	s, o := attachNew(t, "memory")
	a, err := rendezvous.Read(o.StateDir)
	if err != nil {
		t.Fatal(err)
	}
	a.Token = strings.Repeat("0", len(a.Token))
	l, err := dial(timeout(t, 5*time.Second), a)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	forged := newStorage(func(context.Context) (*link, error) { return l, nil }, time.Second, "", s.logger)
	defer forged.Close()
	_, get := forged.Get(timeout(t, 5*time.Second), []byte("a"))
	_, hold := forged.Acquire(timeout(t, 5*time.Second), "a", store.Holder{})
	for _, err := range []error{get, hold} {
		if err == nil || !strings.Contains(err.Error(), "the token is not the one") {
			t.Errorf("got %v", err)
		}
	}
}

func TestStorageOfAnotherVersionIsNotReplaced(t *testing.T) {
	_, o := attachNew(t, "memory")
	a, err := rendezvous.Read(o.StateDir)
	if err != nil {
		t.Fatal(err)
	}
	a.Protocol = 99
	if err := a.Write(o.StateDir); err != nil {
		t.Fatal(err)
	}
	_, err = AttachStorage(timeout(t, 5*time.Second), o)
	if err == nil || !strings.Contains(err.Error(), "version 99") || !alive(a.Process.PID) {
		t.Errorf("got %v", err)
	}
}

// TestStateDirectoryIsDeleted: a storage process whose folder is gone does not
// stay for ever.
func TestStateDirectoryIsDeleted(t *testing.T) {
	s, o := attachNew(t, "badger")
	pid := storagePID(t, o)
	if err := os.RemoveAll(o.StateDir); err != nil {
		t.Fatal(err)
	}
	s.Close()
	within(t, 10*time.Second, "the process leaves", func() bool { return !alive(pid) })
}

func TestStorageOfItsOwn(t *testing.T) {
	mark := "mark-" + t.Name()
	leaveNothing(t, mark)
	s := NewStorage(command(t, "own-storage", mark))
	ctx := timeout(t, 20*time.Second)
	if _, err := s.Commit(ctx, put("a", "b")); err != nil {
		t.Error(err)
	}
	lease, err := s.Acquire(ctx, "l", store.Holder{PID: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.Release(ctx); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.Get(ctx, []byte("a")); !errors.Is(err, store.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
