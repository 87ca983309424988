package app

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/adrg/xdg"

	"muster/cmd/internal/config"
)

// Project is a folder and the places on this machine that belong to it.
type Project struct {
	Dir  string // absolute, symlinks resolved: what --dir names
	Root string // of the git repository around Dir, else Dir
	Name string // readable, unique on this machine
}

// FindProject says which project a folder belongs to.
func FindProject(dir string) (Project, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return Project{}, Usage("--dir: %w", err)
	}
	if st, err := os.Stat(abs); err != nil || !st.IsDir() {
		return Project{}, Usage("--dir %s: not a folder", dir)
	}
	p := Project{Dir: abs, Root: abs}
	for d := abs; ; d = filepath.Dir(d) {
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			p.Root = d
			break
		}
		if d == filepath.Dir(d) {
			break
		}
	}
	p.Name = projectName(p.Root)
	return p, nil
}

// projectName is the folder's own name and a hash of the whole path, since many folders are called "src".
func projectName(root string) string {
	readable := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '-'
	}, filepath.Base(root))
	readable = strings.Trim(readable, "-.")
	if readable == "" {
		readable = "root"
	}
	sum := sha256.Sum256([]byte(root))
	return readable[:min(len(readable), 40)] + "-" + hex.EncodeToString(sum[:4])
}

// Origin names the folder for people elsewhere.
func (p Project) Origin() string { return hostname() + ":" + p.Dir }

// DataDir is where the project's board is kept.
func (p Project) DataDir() (string, error) {
	return homely("XDG_DATA_HOME", xdg.DataHome, p.Name)
}

// CacheDir is where snapshots and trees of agents are kept, for all projects of this user.
func CacheDir() (string, error) { return homely("XDG_CACHE_HOME", xdg.CacheHome) }

// Direct fails where agents may not work on the folder itself: where it holds what says how they are confined, or has to do with where we keep
// boards, with their keys, and the files of other jobs.
func (p Project) Direct(file config.File) error {
	if err := file.Outside(p.Dir); err != nil {
		return err
	}
	data, err := homely("XDG_DATA_HOME", xdg.DataHome)
	cache, err2 := CacheDir()
	if err != nil || err2 != nil {
		return nil // there are no such places
	}
	for _, kept := range []string{data, cache} {
		kept, err := filepath.EvalSymlinks(kept)
		if err != nil {
			continue // there is nothing yet
		}
		for _, way := range [][2]string{{p.Dir, kept}, {kept, p.Dir}} {
			if rel, err := filepath.Rel(way[0], way[1]); err == nil && filepath.IsLocal(rel) {
				return fmt.Errorf("%s: boards and files of jobs are kept in %s, which agents could read and change: work on a folder beside it", p.Dir, kept)
			}
		}
	}
	return nil
}

// homely is a folder of ours below one that the environment names, itself or as part of the user's home. Without either there is no such place:
// what would be guessed (the root, the present folder) is nobody's.
func homely(variable, base string, below ...string) (string, error) {
	home, own := os.Getenv("HOME"), os.Getenv(variable)
	if !filepath.IsAbs(home) && !filepath.IsAbs(own) {
		return "", &Fault{
			Code: ExitUsage, Err: fmt.Errorf("HOME is %q and %s is %q, neither an absolute path: there is no folder to keep things in", home, variable, own),
			Hint: "set HOME; or name the board's folder with --data FOLDER, and one for copies of files with XDG_CACHE_HOME",
		}
	}
	return filepath.Join(append([]string{base, "muster"}, below...)...), nil
}

// ScratchDir makes a folder for what a session leaves beside its workspace, outside of the folder that it works on; the caller removes it.
func (p Project) ScratchDir() (string, error) {
	parents := []string{os.TempDir(), xdg.RuntimeDir, "/dev/shm"}
	if cache, err := CacheDir(); err == nil {
		parents = append(parents, cache)
	}
	for _, parent := range parents {
		real, err := filepath.EvalSymlinks(parent)
		if err != nil {
			continue
		}
		if rel, err := filepath.Rel(p.Dir, real); err == nil && filepath.IsLocal(rel) {
			continue
		}
		dir, err := os.MkdirTemp(real, "muster-*")
		if err != nil {
			return "", fmt.Errorf("make scratch folder: %w", err)
		}
		return dir, nil
	}
	return "", fmt.Errorf("%s holds every folder for temporary files: set TMPDIR to one outside, or work on a smaller folder", p.Dir)
}
