package git

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Source is a repository that a View stands for.
type Source struct {
	Common     string // absolute; the folder of what its work trees share
	Config     Config
	Attributes []byte // of its info/attributes
	Exclude    []byte // of its info/exclude
}

// Who commits where a repository does not say who does.
const (
	NobodyName  = "muster"
	NobodyEmail = "muster@localhost"
)

// Anonymous says that a repository does not say who commits.
func (c Config) Anonymous() bool {
	for _, who := range []string{"author", "committer"} {
		if c.Get(who+".name") == "" && c.Get("user.name") == "" || c.Get(who+".email") == "" && c.Get("user.email") == "" {
			return true
		}
	}
	return false
}

// NewView makes the folder dir, in which git finds a repository without its configuration. Everyone may read it; git need not write to it. What
// belongs to one work tree is not in it.
func NewView(dir string, s Source) error {
	config, err := s.Config.forView(entry{"user.name", NobodyName}, entry{"user.email", NobodyEmail})
	if err != nil {
		return err
	}
	// Made for another user of this machine, in a sandbox, whatever the umask.
	info := filepath.Join(dir, "info")
	err = errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, 0o755), os.Mkdir(info, 0o755), os.Chmod(info, 0o755))
	for name, content := range map[string][]byte{"config": config, "info/attributes": s.Attributes, "info/exclude": s.Exclude} {
		file := filepath.Join(dir, name)
		if err == nil {
			err = errors.Join(os.WriteFile(file, content, 0o644), os.Chmod(file, 0o644))
		}
	}
	// Where references are looked for depends on the version of git: here or beside HEAD.
	for _, name := range []string{"refs", "packed-refs", "logs", "shallow"} {
		if err == nil {
			err = os.Symlink(filepath.Join(s.Common, name), filepath.Join(dir, name))
		}
	}
	if err != nil {
		return fmt.Errorf("make a view of a repository: %w", err)
	}
	return nil
}
