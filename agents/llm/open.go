package llm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
)

// ErrNoModel means that the name of a model is empty, or of a provider that this build does not have; nothing was asked.
var ErrNoModel = errors.New("no such model")

var sha256Hex = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{64}$`) })

// Open returns the model that spec names. fetch writes the content of an artifact; it may be nil where no script comes from
// the artifact store.
func Open(spec string, fetch func(sha string, w io.Writer) error) (Model, error) {
	provider, rest, ok := strings.Cut(spec, ":")
	switch {
	case spec == "":
		return nil, fmt.Errorf("%w: a prompt needs one: name it with --model script:FILE, or model: in the plan or profile", ErrNoModel)
	case !ok || provider != "script":
		return nil, fmt.Errorf("%w: %q: this build has one provider, script (script:FILE); it cannot ask others", ErrNoModel, spec)
	case rest == "":
		return nil, fmt.Errorf("%w: %q names no file: write script:FILE", ErrNoModel, spec)
	}
	sha, stored := strings.CutPrefix(rest, "sha256:")
	if !stored {
		return openFile(rest)
	}
	if !sha256Hex().MatchString(sha) {
		return nil, fmt.Errorf("%w: %q: after sha256: must come 64 hexadecimal digits", ErrNoModel, spec)
	}
	if fetch == nil {
		return nil, fmt.Errorf("%w: %q: there is no artifact store to read it from", ErrNoModel, spec)
	}
	b := bounded{left: maxScript}
	if err := fetch(sha, &b); err != nil {
		return nil, fmt.Errorf("read model %s: %w", spec, err)
	}
	return ParseScript("script "+sha[:12], b.buf.Bytes())
}

// ScriptFile returns the local file that a spec names, "" for any other model: who submits a job to other machines
// stores that file as an artifact and names script:sha256:<hash> instead.
func ScriptFile(spec string) string {
	rest, ok := strings.CutPrefix(spec, "script:")
	if !ok || strings.HasPrefix(rest, "sha256:") {
		return ""
	}
	return rest
}

func openFile(path string) (Model, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("script: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("open script %s: not a regular file", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxScript+1))
	if err != nil {
		return nil, fmt.Errorf("read script: %w", err)
	}
	return ParseScript(path, data)
}

// bounded collects what is written and refuses more than its limit.
type bounded struct {
	buf  bytes.Buffer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	if len(p) > b.left {
		return 0, fmt.Errorf("a script has at most %d bytes", maxScript)
	}
	b.left -= len(p)
	return b.buf.Write(p)
}

// IsScript says that a spec names a script, local or stored.
func IsScript(spec string) bool { return strings.HasPrefix(spec, "script:") }
