package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/adrg/xdg"
	"golang.org/x/sys/unix"

	"muster/agents/document"
	"muster/board/policy"
	"muster/tools/rules"
	"muster/tools/workspace"
)

// File is what the configuration file says.
type File struct {
	Path    string       `yaml:"-"` // where it is, or would be; empty: there is no such place
	Read    bool         `yaml:"-"` // it was there
	Sandbox Sandbox      `yaml:"sandbox"`
	Rules   policy.Rules `yaml:"rules"`
	Secrets Secrets      `yaml:"secrets"`
	Walk    Walk         `yaml:"walk"`
	Web     Web          `yaml:"web"`
	Search  Search       `yaml:"search"`

	set *rules.Set // of Rules
}

// RuleSets are the rules as tools obey them.
func (f File) RuleSets() []*rules.Set {
	if f.set == nil {
		return nil
	}
	return []*rules.Set{f.set}
}

// Sandbox is how commands are confined. Zero values take the defaults of the command.
type Sandbox struct {
	Mode           string `yaml:"mode"`      // auto or required
	AllowOff       bool   `yaml:"allow_off"` // --sandbox off works
	policy.Sandbox `yaml:",inline"`
	Readable       []string `yaml:"readable"` // files and folders that commands may read beside the system's; ~ is the user's home
}

// Secrets names what is taken out of everything that is shown or stored.
type Secrets struct {
	Env   []string `yaml:"env"`   // variables of the environment
	Files []string `yaml:"files"` // files, each a secret as a whole without the blanks around it; ~ is the user's home
}

// Walk names the folders that grep and glob do not enter unless git tracks a file in them.
type Walk struct {
	Prune     []string `yaml:"prune"`      // in place of the list that is built in; missing: that list; empty: no folder
	AlsoPrune []string `yaml:"also_prune"` // beside that
}

// Pruned is the whole list, nil for the one that is built in.
func (w Walk) Pruned() []string {
	if len(w.AlsoPrune) == 0 {
		return w.Prune
	}
	list := w.Prune
	if list == nil {
		list = workspace.Pruned()
	}
	return sorted(list, w.AlsoPrune)
}

const maxFile = 256 << 10 // bytes

// place is where the file is when nobody names another.
func place() string {
	if !filepath.IsAbs(os.Getenv("HOME")) && !filepath.IsAbs(os.Getenv("XDG_CONFIG_HOME")) {
		return ""
	}
	return filepath.Join(xdg.ConfigHome, "muster", "config.yaml")
}

// ReadFile reads the configuration file; an empty name is the usual place, where it may be missing.
func ReadFile(name string) (File, error) {
	f := File{Path: name}
	if name == "" {
		if f.Path = place(); f.Path == "" {
			return f, nil
		}
	}
	data, err := readOwn(f.Path)
	if name == "" && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) {
		return f, nil
	}
	if err != nil {
		return f, fmt.Errorf("configuration: %w", err)
	}
	f.Read = true
	if onlyComments(data) {
		return f, nil
	}
	doc, err := document.Read(f.Path, data, maxFile, &f)
	if err != nil {
		return f, err
	}
	return f, f.check(doc)
}

// Outside fails where the file lies, or would lie, in a folder that agents work on directly: they could make themselves a looser one.
func (f File) Outside(dir string) error {
	for _, of := range []string{f.Path, place()} {
		if of == "" {
			continue
		}
		abs, err := filepath.Abs(of)
		if err != nil {
			return err
		}
		abs = real(abs)
		if rel, err := filepath.Rel(dir, abs); err == nil && filepath.IsLocal(rel) {
			return fmt.Errorf("%s holds the configuration of this machine, %s, which agents could change: work on a folder below or beside it", dir, abs)
		}
	}
	return nil
}

// real is an absolute path without symlinks as far as it exists.
func real(path string) string {
	if to, err := filepath.EvalSymlinks(path); err == nil || path == filepath.Dir(path) {
		return to
	}
	return filepath.Join(real(filepath.Dir(path)), filepath.Base(path))
}

func onlyComments(data []byte) bool {
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

// readOwn reads a file that nobody but this user and root can have written. What is checked is what is read.
func readOwn(name string) ([]byte, error) {
	return readRegular(name, maxFile, func(st fs.FileInfo) error {
		if s, ok := st.Sys().(*syscall.Stat_t); ok && s.Uid != 0 && int(s.Uid) != os.Geteuid() {
			return fmt.Errorf("%s belongs to user %d: it decides how commands are confined, so it must belong to you (%d) or to root", name, s.Uid, os.Geteuid())
		}
		if st.Mode().Perm()&0o002 != 0 {
			return fmt.Errorf("%s can be written by everybody: it decides how commands are confined; chmod o-w it", name)
		}
		return nil
	})
}

// readRegular reads a file of at most max bytes that check has nothing against. A pipe does not hang it, and a device has no end.
func readRegular(name string, most int, check func(fs.FileInfo) error) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", name)
	}
	if err := check(st); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(data) > most {
		return nil, fmt.Errorf("%s: over %d bytes, the most that is allowed", name, most)
	}
	return data, nil
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// check says what is wrong with the values, each with its line.
func (f *File) check(doc *document.Doc) error {
	var wrong []error
	say := func(at []any, format string, a ...any) { wrong = append(wrong, doc.Errorf(at, format, a...)) }
	s := &f.Sandbox
	switch s.Mode {
	case "", "auto", "required":
	case "off":
		missing := "give --sandbox off to each command that is to run so"
		if !s.AllowOff {
			missing = "set allow_off: true, and " + missing
		}
		say([]any{"sandbox", "mode"}, "mode off cannot stand here: leave mode out; %s", missing)
	default:
		say([]any{"sandbox", "mode"}, "mode %q: there are auto and required", s.Mode)
	}
	if err := s.CheckHost(); err != nil {
		field, _, _ := strings.Cut(err.Error(), ":")
		say([]any{"sandbox", field}, "%v", err)
	}
	for i, p := range s.Readable {
		full, err := expand(p)
		if err != nil {
			say([]any{"sandbox", "readable", i}, "%v", err)
		} else if full == "/" {
			say([]any{"sandbox", "readable", i}, "/ is everything: name the folders that commands need")
		}
		s.Readable[i] = full
	}
	err := f.Rules.Check()
	if err == nil {
		f.set, err = rules.Parse(rules.Lists(f.Rules))
	}
	if err != nil {
		say([]any{"rules"}, "rules: %v", err)
	}
	for i, name := range f.Secrets.Env {
		if !variable.MatchString(name) {
			say([]any{"secrets", "env", i}, "%q is no name of a variable", name)
		}
	}
	for i, p := range f.Secrets.Files {
		full, err := expand(p)
		if err != nil {
			say([]any{"secrets", "files", i}, "%v", err)
		}
		f.Secrets.Files[i] = full
	}
	for field, names := range map[string][]string{"prune": f.Walk.Prune, "also_prune": f.Walk.AlsoPrune} {
		for i, name := range names {
			if name == "" || name == "." || name == ".." || strings.ContainsAny(name, `/*?[]{}\`) {
				say([]any{"walk", field, i}, "%q is no name of a folder: names are compared as they are", name)
			}
		}
	}
	f.checkWeb(say)
	return errors.Join(wrong...)
}

// expand makes an absolute path of one that may begin with ~.
func expand(p string) (string, error) {
	if rest, ok := strings.CutPrefix(p, "~"); ok && (rest == "" || rest[0] == '/') {
		home := os.Getenv("HOME")
		if !filepath.IsAbs(home) {
			return p, fmt.Errorf("%q: HOME is not set, so ~ is nothing", p)
		}
		return filepath.Join(home, rest), nil
	}
	if !filepath.IsAbs(p) {
		return p, fmt.Errorf("%q: write an absolute path, or one that begins with ~/", p)
	}
	return filepath.Clean(p), nil
}

// sorted names without doubles.
func sorted(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}
