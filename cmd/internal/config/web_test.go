package config_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster/cmd/internal/config"
	"muster/tools/web"
)

func TestSearchRefusals(t *testing.T) {
	for in, want := range map[string]string{
		"search: {backend: google, url: 'http://x/'}\n":                       `config.yaml:1: backend "google": there are searxng, brave, tavily`,
		"search:\n  url: http://x/\n":                                         `config.yaml:1: backend: which one? there are searxng, brave, tavily`,
		"search:\n  backend: searxng\n":                                       `config.yaml:1: url: searxng needs that of its server`,
		"search:\n  backend: searxng\n  url: x\n":                             `config.yaml:3: url: write one that begins with http`,
		"search:\n  backend: brave\n":                                         `config.yaml:1: key: brave needs one; name it with key_env or key_file`,
		"search:\n  backend: brave\n  key_env: A B\n":                         `config.yaml:3: "A B" is no name of a variable`,
		"search:\n  backend: brave\n  key_env: A\n  key_file: /x\n":           `config.yaml:4: key_env and key_file: give one of them`,
		"search:\n  backend: brave\n  key_file: x\n":                          `config.yaml:3: "x": write an absolute path`,
		"search: {backend: brave, key: secret}\n":                             `unknown field "key"`,
		"search: {backend: brave, url: 'http://api.example.com', key_env: A}": `config.yaml:1: url: the key would go over the network without encryption`,
		"web:\n  hosts:\n    - ok.internal\n    - http://x/\n":                `config.yaml:4: "http://x/": write the host alone`,
		"web:\n  ignore_robots: ['*.*']\n":                                    `config.yaml:2: domain "*.*"`,
	} {
		if _, err := config.ReadFile(write(t, in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v\nwant %s", in, err, want)
		}
	}
}

// The key comes from the environment or a file, is a secret from then on, and goes to the server alone.
func TestSearchKey(t *testing.T) {
	const key = "tvly-0123456789abcdef"
	var sent []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = append(sent, r.Header.Get("Authorization"))
		fmt.Fprint(w, `{"results":[]}`)
	}))
	defer server.Close()
	t.Setenv("SEARCH_PHRASE", key)
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{"key_env: SEARCH_PHRASE", "key_file: " + file} {
		h, err := hostOf(t, "auto", fmt.Sprintf("search: {backend: tavily, url: %q, %s}\nsecrets: {env: [OTHER]}", server.URL, from), "")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := h.Web.Search(context.Background(), "q", 5, 100); err != nil || sent[len(sent)-1] != "Bearer "+key {
			t.Errorf("%s: %v, sent %q", from, err, sent)
		}
		values, err := h.File.Secrets.Values()
		if err != nil {
			t.Fatal(err)
		}
		found := slices.Collect(func(yield func(string) bool) {
			for _, v := range values {
				if !yield(v) {
					return
				}
			}
		})
		if !slices.Contains(found, key) {
			t.Errorf("%s: the secrets are %v", from, values)
		}
	}
	h, err := hostOf(t, "auto", fmt.Sprintf("search: {backend: tavily, url: %q, key_env: SEARCH_PHRASE}", server.URL), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.File.Secrets.Unset(); err != nil {
		t.Fatal(err)
	}
	if v, ok := os.LookupEnv("SEARCH_PHRASE"); ok {
		t.Errorf("the environment still has %q", v)
	}
	for in, want := range map[string]string{
		"search: {backend: brave, key_env: NOT_SET}":                           "search: NOT_SET is not set, and key_env says that it holds the key of brave",
		"search: {backend: brave, key_file: /nowhere/key}":                     "search: key_file: open /nowhere/key",
		"search: {backend: brave, key_file: " + os.DevNull + "}":               "search: key_file: ",
		"search: {backend: searxng, url: 'http://localhost:1'}":                "",
		"web: {hosts: ['[::1]:80', wiki.internal], ignore_robots: ['*', a.b]}": "",
	} {
		h, err := hostOf(t, "auto", in, "")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", in, err)
		}
		if err == nil && (h.Web.Searches() != "") != strings.Contains(in, "searxng") {
			t.Errorf("%s: searches with %q", in, h.Web.Searches())
		}
	}
}

// A host that is named is fetched from wherever it is, a robots.txt that is ignored is not asked for, and other hosts are as ever.
func TestNamedHosts(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			fmt.Fprint(w, "User-agent: *\nDisallow: /\n")
			return
		}
		fmt.Fprint(w, "inside")
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	get := func(h config.Host) (string, error) {
		p, err := h.Web.Fetch(context.Background(), web.Request{URL: server.URL, Bytes: 1 << 20})
		if err != nil {
			return "", err
		}
		return p.Text, nil
	}
	for in, want := range map[string]string{
		"":                                      "not a public address",
		fmt.Sprintf("web: {hosts: [%q]}", host): "robots.txt",
		fmt.Sprintf("web: {hosts: [%q], ignore_robots: [127.0.0.1]}", host):   "",
		fmt.Sprintf("web: {hosts: [%q], ignore_robots: ['*']}", host):         "",
		fmt.Sprintf("web: {hosts: [%q], ignore_robots: [example.com]}", host): "robots.txt",
		"web: {hosts: ['127.0.0.1:1'], ignore_robots: ['*']}":                 "its port",
	} {
		h, err := hostOf(t, "auto", in, "")
		if err != nil {
			t.Fatal(err)
		}
		text, err := get(h)
		if want == "" && (err != nil || text != "inside") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %q, %v", in, text, err)
		}
	}
}
