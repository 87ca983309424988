package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"muster/board/policy"
	"muster/tools/egress"
	"muster/tools/web"
)

// Web is what agents may fetch beside the public web, and how.
type Web struct {
	Hosts        []string `yaml:"hosts"`         // servers that are reached wherever they are: a name or an address, with or without a port
	IgnoreRobots []string `yaml:"ignore_robots"` // domains whose robots.txt is not asked for; "*" is all
}

// Search is where agents search the web. Without a backend they do not.
type Search struct {
	Backend string `yaml:"backend"`  // searxng, brave or tavily
	URL     string `yaml:"url"`      // of its server; brave and tavily have a public one
	KeyEnv  string `yaml:"key_env"`  // variable of the environment that holds the key; it is a secret then
	KeyFile string `yaml:"key_file"` // file that holds it; ~ is the user's home
}

// everyHost is the word for all hosts.
const everyHost = "*"

// checkWeb says what is wrong with the web and the search, each with its line. What holds the key becomes a secret.
func (f *File) checkWeb(say func(at []any, format string, a ...any)) {
	for i, h := range f.Web.Hosts {
		if _, err := egress.ParseHost(h); err != nil {
			say([]any{"web", "hosts", i}, "%v", err)
		}
	}
	for i, d := range f.Web.IgnoreRobots {
		if d == everyHost {
			continue
		}
		if _, err := policy.ParseDomain(d); err != nil {
			say([]any{"web", "ignore_robots", i}, "%v", err)
		}
	}
	s := &f.Search
	switch {
	case *s == Search{}:
		return
	case s.Backend == "":
		say([]any{"search"}, "backend: which one? there are %s", strings.Join(web.Backends(), ", "))
		return
	case s.KeyEnv != "" && s.KeyFile != "":
		say([]any{"search", "key_file"}, "key_env and key_file: give one of them")
	case s.KeyEnv != "" && !variable.MatchString(s.KeyEnv):
		say([]any{"search", "key_env"}, "%q is no name of a variable", s.KeyEnv)
	case s.KeyEnv != "":
		f.Secrets.Env = append(f.Secrets.Env, s.KeyEnv)
	case s.KeyFile != "":
		full, err := expand(s.KeyFile)
		if err != nil {
			say([]any{"search", "key_file"}, "%v", err)
		}
		s.KeyFile = full
		f.Secrets.Files = append(f.Secrets.Files, full)
	}
	key := ""
	if s.KeyEnv+s.KeyFile != "" {
		key = "is there"
	}
	if err := (web.Search{Backend: s.Backend, URL: s.URL, Key: key}).Check(); err != nil {
		field, rest, _ := strings.Cut(err.Error(), ": ")
		if field == "key" {
			say([]any{"search"}, "key: %s; name it with key_env or key_file", rest)
			return
		}
		say([]any{"search", strings.Fields(field)[0]}, "%v", err)
	}
}

// key reads the key of the search. Read it before Unset.
func (s Search) key() (string, error) {
	switch {
	case s.KeyEnv != "":
		if v := os.Getenv(s.KeyEnv); v != "" {
			return v, nil
		}
		return "", fmt.Errorf("search: %s is not set, and key_env says that it holds the key of %s", s.KeyEnv, s.Backend)
	case s.KeyFile != "":
		data, err := readRegular(s.KeyFile, maxSecretFile, func(fs.FileInfo) error { return nil })
		if err != nil {
			return "", fmt.Errorf("search: key_file: %w", err)
		}
		if v := strings.TrimSpace(string(data)); v != "" {
			return v, nil
		}
		return "", fmt.Errorf("search: key_file: %s is empty", s.KeyFile)
	}
	return "", nil
}

// reach makes what agents of this host use the web with; they may also fetch from hosts.
func (h *Host) reach(hosts []string) error {
	f := h.File
	o := web.Options{Search: web.Search{Backend: f.Search.Backend, URL: f.Search.URL}}
	var err error
	if o.Search.Key, err = f.Search.key(); err != nil {
		return err
	}
	var wrong []error
	for _, text := range slices.Concat(f.Web.Hosts, hosts) {
		one, err := egress.ParseHost(text)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("--allow-host %q: %w", text, err))
		}
		o.Dialer.Hosts = append(o.Dialer.Hosts, one)
	}
	if err := errors.Join(wrong...); err != nil {
		return err
	}
	all := slices.Contains(f.Web.IgnoreRobots, everyHost)
	o.IgnoreRobots = func(host string) bool { return all || policy.Within(host, f.Web.IgnoreRobots) }
	h.Web, err = web.New(o)
	return err
}
