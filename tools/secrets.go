package tools

import (
	"slices"

	"muster/board/secrets"
)

// hidden is what is taken out of all that leaves a Set: the secrets of its configuration or of its job, and those that its commands are given.
func (c Config) hidden() (*secrets.Redactor, error) {
	r := c.Secrets
	if c.Lease != nil {
		r = c.Lease.Secrets()
	}
	env := make([]string, 0, len(c.Env))
	for name, v := range c.Env {
		env = append(env, name+"="+v)
	}
	return r.With(secrets.Credentials(env))
}

// hush takes secrets out of facts.
func (s *Set) hush(f Facts) Facts {
	f.Files, f.Cuts = slices.Clone(f.Files), slices.Clone(f.Cuts)
	for i := range f.Files {
		f.Files[i].Path = s.secrets.String(f.Files[i].Path)
	}
	for i := range f.Cuts {
		f.Cuts[i].What = s.secrets.String(f.Cuts[i].What)
	}
	return f
}
