package embedded

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
	"time"

	"github.com/nats-io/nkeys"
)

const (
	lockFile = "lock"
	keyFile  = "user.nk"
	infoFile = "server.json"
)

// info is what server.json says.
type info struct {
	URL   string    `json:"url"`
	PID   int       `json:"pid"`
	Start time.Time `json:"start"`
}

// prepare makes dir a data folder, ours alone. One that is there keeps its mode: it is refused where others can write to it
// (they could put their own key there) or where it holds other things.
func prepare(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return full(filepath.Dir(dir), fmt.Errorf("make data folder %s: %w", dir, err))
	}
	st, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	if open(st) {
		return fmt.Errorf("data folder %s: other users can write to it (mode %#o); close it (chmod 700 %s) or name a folder that is not there yet",
			dir, st.Mode().Perm(), dir)
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	// The lock is the first file that anybody makes here; another one of ours stands in for a lock that was removed.
	if len(names) > 0 && !holds(names, lockFile) && !holds(names, keyFile) && !holds(names, infoFile) {
		return fmt.Errorf("data folder %s: it holds other things (%s, …); name an empty or a new folder", dir, names[0].Name())
	}
	return nil
}

// open says whether others than the owner can write to a folder. A group with the number of its owner is that user's own: many
// systems give each user one, and make folders writable to it.
func open(st fs.FileInfo) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	own := ok && sys.Gid == sys.Uid
	return st.Mode()&0o002 != 0 || st.Mode()&0o020 != 0 && !own
}

func holds(entries []fs.DirEntry, name string) bool {
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == name })
}

// loadKey reads the seed of the user; fs.ErrNotExist before the first server made it.
func loadKey(dir string) (nkeys.KeyPair, error) {
	name := filepath.Join(dir, keyFile)
	seed, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	kp, err := nkeys.FromSeed([]byte(strings.TrimSpace(string(seed))))
	if err != nil {
		return nil, fmt.Errorf("key %s: %w (remove it with everything attached ended, and a new one is made)", name, err)
	}
	return kp, nil
}

// makeKey reads the seed or makes it; only the holder of the lock calls it.
func makeKey(dir string) (nkeys.KeyPair, error) {
	kp, err := loadKey(dir)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return kp, err
	}
	if kp, err = nkeys.CreateUser(); err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	seed, err := kp.Seed()
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	return kp, replace(filepath.Join(dir, keyFile), append(seed, '\n'))
}

func readInfo(dir string) (info, error) {
	var in info
	b, err := os.ReadFile(filepath.Join(dir, infoFile))
	if err != nil {
		return in, fmt.Errorf("read server address: %w", err)
	}
	if err := json.Unmarshal(b, &in); err != nil {
		return in, fmt.Errorf("read server address: %s: %w", infoFile, err)
	}
	return in, nil
}

func writeInfo(dir string, in info) error {
	b, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("write server address: %w", err)
	}
	return replace(filepath.Join(dir, infoFile), append(b, '\n'))
}

// replace writes a file whole or not at all, readable by its owner only.
func replace(name string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer os.Remove(f.Name()) // gone already after the rename
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
