package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

// prepare makes dir a data folder: there, ours alone. A folder that holds other things is left as it is and refused.
func prepare(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make data folder %s: %w", dir, err)
	}
	if closed, err := private(dir); closed || err != nil {
		return err
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, lockFile)); errors.Is(err, fs.ErrNotExist) && len(names) > 0 {
		// Asked again: another process may have closed and filled it since.
		if closed, err := private(dir); closed || err != nil {
			return err
		}
		return fmt.Errorf("data folder %s: it holds other things (%s, …); name an empty or a new folder", dir, names[0].Name())
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("close the data folder to others: %w", err)
	}
	return nil
}

func private(dir string) (bool, error) {
	st, err := os.Stat(dir)
	if err != nil {
		return false, fmt.Errorf("data folder: %w", err)
	}
	return st.Mode().Perm() == 0o700, nil
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
