package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Config is what a repository's configuration says, as data. Nothing that it includes is in it.
type Config struct{ entries []entry }

// entry is a variable: "core.autocrlf", "branch.main.merge". Sections and names are in small letters, what is between them as it was written.
type entry struct{ key, value string }

// FileBytes bounds a configuration and the like; the largest of real repositories (a remote for each of a thousand people) have some hundred thousand
// bytes.
const FileBytes = 1 << 20

// ParseConfig has git read the text of a configuration file. Nothing it includes is read, and nothing it names is run: the text is all git gets.
func ParseConfig(ctx context.Context, run Runner, text []byte) (Config, error) {
	if len(text) > FileBytes {
		return Config{}, fmt.Errorf("the configuration of the repository has %d bytes, more than %d", len(text), FileBytes)
	}
	var c Config
	if len(text) == 0 {
		return c, nil
	}
	list := &Records{Fn: func(s string) error {
		key, value, has := strings.Cut(s, "\n")
		if !has {
			value = "true" // a name alone
		}
		c.entries = append(c.entries, entry{key, value})
		return nil
	}}
	err := run.Run(ctx, Repo{}, bytes.NewReader(text), list, "config", "--file", "-", "--no-includes", "--null", "--list")
	return c, err
}

// Get is the last value of a variable, whose section and name are in small letters; "" where there is none.
func (c Config) Get(key string) string {
	for _, e := range slices.Backward(c.entries) {
		if e.key == key {
			return e.value
		}
	}
	return ""
}

// True says that a variable is switched on.
func (c Config) True(key string) bool {
	switch strings.ToLower(c.Get(key)) {
	case "true", "yes", "on", "1":
		return true
	}
	return false
}

// ErrFormat is wrapped where a repository is stored in a way that is not known here. Nothing was done.
var ErrFormat = errors.New("the format of the repository is not known here")

// format is what the configuration says of how the repository is stored, as far as git must know it.
func (c Config) format() ([]entry, error) {
	version := c.Get("core.repositoryformatversion")
	if !slices.Contains([]string{"", "0", "1"}, version) {
		return nil, fmt.Errorf("%w: version %q", ErrFormat, version)
	}
	var keep []entry
	for _, e := range c.entries {
		name, is := strings.CutPrefix(e.key, "extensions.")
		if !is {
			continue
		}
		switch name {
		case "objectformat":
			keep = append(keep, entry{"core.repositoryformatversion", "1"}, e)
		case "noop", "preciousobjects", "worktreeconfig", "relativeworktrees":
		case "partialclone": // what is missing is not fetched
		case "refstorage":
			if e.value != "files" {
				return nil, fmt.Errorf("%w: its references are stored as %q", ErrFormat, e.value)
			}
		default:
			if version == "1" {
				return nil, fmt.Errorf("%w: extension %q", ErrFormat, name)
			}
		}
	}
	return keep, nil
}

// data are the variables that a View takes over: what decides how files are compared and stored, who commits, and what a branch follows. None of them
// names a program, a file or a place.
var data = []string{
	"core.filemode", "core.symlinks", "core.ignorecase", "core.precomposeunicode", "core.protecthfs", "core.protectntfs", "core.autocrlf", "core.eol",
	"core.safecrlf", "core.trustctime", "core.checkstat", "core.sparsecheckout", "core.sparsecheckoutcone", "core.logallrefupdates", "core.sharedrepository",
	"user.name", "user.email", "author.name", "author.email", "committer.name", "committer.email",
	"branch.*.remote", "branch.*.merge", "remote.*.fetch",
}

// isData says that a View takes a variable over.
func (e entry) isData() bool {
	first, last := strings.IndexByte(e.key, '.'), strings.LastIndexByte(e.key, '.')
	if first < last {
		return slices.Contains(data, e.key[:first]+".*"+e.key[last:])
	}
	return slices.Contains(data, e.key)
}

// forView is the text of the configuration that git sees in place of the repository's own, whose variables win over the defaults.
func (c Config) forView(defaults ...entry) ([]byte, error) {
	keep, err := c.format()
	if err != nil {
		return nil, err
	}
	keep = append(keep, defaults...)
	for _, e := range c.entries {
		if e.isData() {
			keep = append(keep, e)
		}
	}
	var b bytes.Buffer
	for _, e := range keep {
		e.write(&b)
	}
	return b.Bytes(), nil
}

// write writes a variable in a section of its own.
func (e entry) write(b *bytes.Buffer) {
	section, rest, _ := strings.Cut(e.key, ".")
	if i := strings.LastIndexByte(rest, '.'); i >= 0 {
		section += ` "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(rest[:i]) + `"`
		rest = rest[i+1:]
	}
	value := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`).Replace(e.value)
	fmt.Fprintf(b, "[%s]\n\t%s = \"%s\"\n", section, rest, value)
}
