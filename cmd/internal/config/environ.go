package config

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster/board/secrets"
)

const maxSecretFile = 64 << 10 // bytes; no longer value is looked for

// Values are the secrets that the file names, by what is shown in their place: those of the environment, and those in files.
func (s Secrets) Values() (map[string]string, error) {
	values := map[string]string{}
	for _, name := range s.Env {
		if v := os.Getenv(name); v != "" {
			values[name] = v
		}
	}
	for _, name := range s.Files {
		data, err := readRegular(name, maxSecretFile, func(fs.FileInfo) error { return nil })
		if err != nil {
			return nil, err
		}
		values[filepath.Base(name)] = strings.TrimSpace(string(data))
	}
	return values, nil
}

// Unset takes credentials, and whatever the file names as a secret, out of the environment of this process, so that nothing it starts inherits
// them. Call it when everything that is wanted of the environment was read, and before anything is started.
func (s Secrets) Unset() error {
	for _, name := range s.private(os.Environ()) {
		if err := os.Unsetenv(name); err != nil {
			return err
		}
	}
	return nil
}

// private lists the variables whose values are for this process alone.
func (s Secrets) private(environ []string) []string {
	names := slices.Collect(maps.Keys(secrets.Credentials(environ)))
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		upper := strings.ToUpper(name)
		if secrets.IsCredential(name) || slices.Contains(s.Env, name) || strings.HasPrefix(upper, "NATS_") || strings.HasSuffix(upper, "_KEY") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
