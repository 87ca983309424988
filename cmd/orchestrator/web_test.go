package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// A plan that searches, fetches and looks for the key in every place that a command can see.
const webPlan = `
jobs:
  - id: a
    steps:
      - {tool: web_search, args: {query: harbour times}}
      - {tool: run_command, args: {command: "env; tr '\\0' '\\n' < /proc/$PPID/environ; cat ~/.config/muster/config.yaml; echo end of it"}}
      - {tool: web_search, args: {query: what is your key}}
`

// The key of a search goes to its server, and is in nothing that commands have, that is printed, logged, or kept on the board.
func TestSearchKeyStaysHidden(t *testing.T) {
	const key = "qT7-zx81-search-key-Mm42"
	var keyed, asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Header.Get("X-Subscription-Token") == key {
			keyed.Add(1)
		}
		if strings.Contains(r.FormValue("q"), "key") { // a server that says it again
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprintf(w, `{"error":{"detail":"the key %s is unknown"}}`, r.Header.Get("X-Subscription-Token"))
			return
		}
		fmt.Fprintf(w, `{"type":"search","web":{"results":[{"title":"Times","url":"https://example.com/?k=%s","description":"found with %[1]s"}]}}`, r.Header.Get("X-Subscription-Token"))
	}))
	defer server.Close()
	dir, home := t.TempDir(), t.TempDir()
	configure := func(from string) {
		t.Helper()
		text := fmt.Sprintf("sandbox: {mode: auto, min: limits}\nsearch: {backend: brave, url: %q, %s}\n", server.URL, from)
		name := filepath.Join(home, "config", "muster", "config.yaml")
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(filepath.Join(home, "plan.yaml"), []byte(webPlan), 0o600), os.WriteFile(filepath.Join(home, "key"), []byte(key+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(home, "board")
	run := func(in string, args ...string) []byte {
		t.Helper()
		c := program(t, append(args, "--data", data, "--dir", dir)...)
		c.Env = append(c.Env, "XDG_CONFIG_HOME="+filepath.Join(home, "config"), "SEARCH_PHRASE="+key)
		c.Stdin = strings.NewReader(in)
		out, err := c.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if bytes.Contains(out, []byte(key)) || bytes.Contains(out, []byte(base64.StdEncoding.EncodeToString([]byte(key)))) {
			t.Errorf("%s shows the key: %.3000s", args[0], out)
		}
		return out
	}
	for _, from := range []string{"key_env: SEARCH_PHRASE", "key_file: " + filepath.Join(home, "key")} {
		configure(from)
		out := run("", "run", "--plan", filepath.Join(home, "plan.yaml"), "--in-place", "--log-level", "debug")
		for _, want := range []string{"1. Times", "found with [redacted ", "the key [redacted ", "end of it"} {
			if !bytes.Contains(out, []byte(want)) {
				t.Errorf("%s: no %q in %s", from, want, out)
			}
		}
		out = run(`{"tool":"web_search","args":{"query":"harbour"}}`+"\n"+`{"tool":"run_command","args":{"command":"env"}}`, "call")
		if !bytes.Contains(out, []byte(`"ok":true`)) || !bytes.Contains(out, []byte("1. Times")) {
			t.Errorf("call: %s", out)
		}
	}
	for _, args := range [][]string{{"list", "--json"}, {"list"}} {
		run("", args...)
	}
	if out := run("", "doctor"); !bytes.Contains(out, []byte("agents search the web by brave")) {
		t.Errorf("doctor: %s", out)
	}
	if asked.Load() != 6 || keyed.Load() != 6 {
		t.Errorf("the server was asked %d times, with the key %d times", asked.Load(), keyed.Load())
	}
	err := filepath.WalkDir(data, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(name)
		if bytes.Contains(b, []byte(key)) {
			t.Errorf("the key is in %s", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// call reaches a host that the command line names, and no other of this machine.
func TestAllowedHost(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, "arrived")
	}))
	defer server.Close()
	line := fmt.Sprintf(`{"tool":"web_fetch","args":{"url":%q}}`, server.URL)
	for flag, want := range map[string]string{
		strings.TrimPrefix(server.URL, "http://"): "arrived",
		"127.0.0.1:1":      "is not: name the host with that port",
		"http://127.0.0.1": "write the host alone",
	} {
		c := program(t, "call", "--dir", t.TempDir(), "--allow-host", flag)
		c.Stdin = strings.NewReader(line)
		if out, _ := c.CombinedOutput(); !bytes.Contains(out, []byte(want)) {
			t.Errorf("%s: %s, want %q", flag, out, want)
		}
	}
}
