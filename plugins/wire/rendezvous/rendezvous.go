// Package rendezvous is how the hosts of one state directory find the storage
// process that they share: a lock that decides who starts it, a lock that it
// owns while it lives, and an address file. Every lock ends with its process.
package rendezvous

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/boughdev/bough/plugins/wire/handshake"
)

// The files below a state directory.
const (
	// StartLock is held by the host that starts a storage process.
	StartLock = "storage.start.lock"
	// OwnerLock is held by the storage process while it lives.
	OwnerLock   = "storage.owner.lock"
	addressFile = "storage.address"
	socketFile  = "storage.sock"
)

// Address tells where a storage process can be reached, and which process it
// must be.
type Address struct {
	Protocol int     `json:"protocol"`
	Process  Process `json:"process"`
	Token    string  `json:"token"` // to be shown with every call
	Socket   string  `json:"socket"`
}

// New is the address of this process: with a fresh token, and a socket in the
// state directory, or in the socket folder of the user when the path would be
// too long.
func New(stateDir string) (Address, error) {
	token := make([]byte, 16)
	rand.Read(token) // crypto/rand never fails: it ends the process
	a := Address{Protocol: handshake.Version, Process: Self(), Token: hex.EncodeToString(token)}
	a.Socket = filepath.Join(stateDir, socketFile)
	if len(a.Socket) > handshake.MaxSocketPath {
		dir, err := handshake.SocketDir()
		if err != nil {
			return a, err
		}
		a.Socket = filepath.Join(dir, "s"+a.Token[:16])
	}
	return a, nil
}

// Read returns the address that the state directory names, fs.ErrNotExist when
// it names none. The process may be gone.
func Read(stateDir string) (Address, error) {
	var a Address
	path := filepath.Join(stateDir, addressFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return a, fmt.Errorf("read the address of the storage process: %w", err)
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return a, fmt.Errorf("read the address of the storage process: %s: %w", path, err)
	}
	return a, nil
}

// Write makes the address known, all of it at once, to this user only.
func (a Address) Write(stateDir string) error {
	data, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("write the address of the storage process: %w", err)
	}
	temp, err := os.CreateTemp(stateDir, addressFile+".*") // with mode 0600
	if err != nil {
		return fmt.Errorf("write the address of the storage process: %w", err)
	}
	_, err = temp.Write(data)
	if closing := temp.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(temp.Name(), filepath.Join(stateDir, addressFile))
	}
	if err != nil {
		os.Remove(temp.Name())
		return fmt.Errorf("write the address of the storage process: %w", err)
	}
	return nil
}

// Stands tells whether the state directory still names this address.
func (a Address) Stands(stateDir string) bool {
	now, err := Read(stateDir)
	return err == nil && now.Token == a.Token
}

// Withdraw removes the address and the socket, unless another process has put
// its own in their place. The owner lock must be held.
func (a Address) Withdraw(stateDir string) {
	if a.Stands(stateDir) {
		os.Remove(filepath.Join(stateDir, addressFile))
	}
	os.Remove(a.Socket)
}
