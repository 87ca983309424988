package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/tools/egress/egresstest"
)

const searchKey = "tvly-Zq81hYt5Wn3"

// service is a server that speaks the three APIs, as far as a search asks for it, over results of its own.
func service(results []Hit) http.Handler {
	type row struct {
		Title       string `json:"title"`
		URL         string `json:"url"`
		Content     string `json:"content,omitempty"`
		Description string `json:"description,omitempty"`
	}
	refuse := func(w http.ResponseWriter, code int, text string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprint(w, text)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /searx/search", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("format") != "json" || r.FormValue("q") == "" {
			refuse(w, http.StatusBadRequest, `{}`)
			return
		}
		rows := []row{}
		for _, h := range results {
			rows = append(rows, row{Title: h.Title, URL: h.URL, Content: h.Snippet})
		}
		_ = json.NewEncoder(w).Encode(struct {
			Query   string     `json:"query"`
			Number  int        `json:"number_of_results"`
			Results []row      `json:"results"`
			Engines [][]string `json:"unresponsive_engines"`
		}{r.FormValue("q"), 0, rows, [][]string{{"google", "timeout"}}})
	})
	mux.HandleFunc("GET /res/v1/web/search", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Subscription-Token") != searchKey {
			refuse(w, http.StatusUnprocessableEntity, `{"type":"ErrorResponse","error":{"code":"SUBSCRIPTION_TOKEN_INVALID","detail":"The provided subscription token is invalid."}}`)
			return
		}
		var count int
		if _, err := fmt.Sscan(r.FormValue("count"), &count); err != nil || count > 20 {
			refuse(w, http.StatusUnprocessableEntity, `{"error":{"detail":"count"}}`)
			return
		}
		rows := []row{}
		for _, h := range results[:min(count, len(results))] {
			rows = append(rows, row{Title: h.Title, URL: h.URL, Description: h.Snippet})
		}
		type list struct {
			Results []row `json:"results"`
		}
		answer := struct {
			Type string `json:"type"`
			Web  *list  `json:"web,omitempty"`
		}{Type: "search"}
		if len(rows) > 0 {
			answer.Web = &list{rows}
		}
		_ = json.NewEncoder(w).Encode(answer)
	})
	mux.HandleFunc("POST /search", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+searchKey {
			refuse(w, http.StatusUnauthorized, `{"detail":{"error":"Unauthorized: missing or invalid API key."}}`)
			return
		}
		var q struct {
			Query string `json:"query"`
			Max   int    `json:"max_results"`
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil || q.Query == "" || r.Header.Get("Content-Type") != "application/json" {
			refuse(w, http.StatusBadRequest, `{"detail":{"error":"Query is missing."}}`)
			return
		}
		rows := []row{}
		for _, h := range results[:min(q.Max, len(results))] {
			rows = append(rows, row{Title: h.Title, URL: h.URL, Content: h.Snippet})
		}
		_ = json.NewEncoder(w).Encode(struct {
			Results []row `json:"results"`
		}{rows})
	})
	return mux
}

// searcher is a client of a backend at a server of the test.
func searcher(t *testing.T, server *httptest.Server, name string) *Client {
	t.Helper()
	s := Search{Backend: name, URL: server.URL}
	if name == "searxng" {
		s.URL += "/searx/"
	} else {
		s.Key = searchKey
	}
	c, err := New(Options{Search: s, Idle: patience})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestBackends(t *testing.T) {
	t.Parallel()
	var results []Hit
	for i := range 12 {
		results = append(results, Hit{fmt.Sprintf("Result %d", i), fmt.Sprintf("https://example.com/%d?a=b&c=d", i), "What it says"})
	}
	results[1] = Hit{"A <strong>bold</strong> &amp; \x1b[31mred\x1b[0m\ntitle \u202e", "https://example.com/1", "It <b>says</b> &lt;this&gt;\n\n" + strings.Repeat("more ", 200)}
	results[2].URL = "javascript:alert(1)"
	results[3].URL = "https://example.com/" + strings.Repeat("x", maxLink)
	server := httptest.NewServer(service(results))
	defer server.Close()
	none := httptest.NewServer(service(nil))
	defer none.Close()
	if got := Backends(); !slices.Equal(got, []string{"searxng", "brave", "tavily"}) {
		t.Errorf("backends %q", got)
	}
	for _, name := range Backends() {
		c := searcher(t, server, name)
		if c.Searches() != name {
			t.Errorf("%s is called %s", name, c.Searches())
		}
		hits, left, err := c.Search(t.Context(), "harbour & times?", 6, 100)
		want := 4
		if name == "searxng" {
			want = 10
		}
		if err != nil || len(hits) != want || left != 2 {
			t.Errorf("%s: %d results, %d left out, %v", name, len(hits), left, err)
			continue
		}
		if hits[0] != (Hit{"Result 0", "https://example.com/0?a=b&c=d", "What it says"}) {
			t.Errorf("%s: %q", name, hits[0])
		}
		if h := hits[1]; h.Title != "A bold & red title" || !strings.HasPrefix(h.Snippet, "It says <this> more more") || len([]rune(h.Snippet)) > 100 || !strings.HasSuffix(h.Snippet, "…") {
			t.Errorf("%s: %q", name, h)
		}
		if hits, _, err := searcher(t, none, name).Search(t.Context(), "nothing", 5, 100); name == "searxng" {
			wantsSearch(t, "no engine answers", err, Later, "1 of its engines did not answer")
		} else if err != nil || len(hits) != 0 {
			t.Errorf("%s: %q, %v", name, hits, err)
		}
	}
}

func wantsSearch(t *testing.T, what string, err error, kind Kind, why string) *Error {
	t.Helper()
	return wants(t, what, nil, err, kind, why)
}

func TestSearchFailures(t *testing.T) {
	t.Parallel()
	packed := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		fmt.Fprint(z, text)
		z.Close()
		return b.String()
	}
	for name, c := range map[string]struct {
		backend string
		status  int
		header  string // name: value
		body    string
		kind    Kind
		why     string
		after   time.Duration
		said    string
	}{
		"rate, with a time":     {"brave", 429, "Retry-After: 12", `{"error":{"code":"RATE_LIMITED","detail":"Request rate limit exceeded"}}`, Later, "the search backend brave answers 429", 12 * time.Second, "RATE_LIMITED: Request rate limit exceeded"},
		"rate, with a reset":    {"brave", 429, "X-RateLimit-Reset: 3, 86000", `{}`, Later, "429", 3 * time.Second, ""},
		"rate, nothing said":    {"tavily", 429, "", "slow down", Later, "429", 0, ""},
		"far too long a time":   {"tavily", 503, "Retry-After: 999999", "", Later, "503", time.Hour, ""},
		"nonsense of a time":    {"tavily", 503, "Retry-After: soon", "", Later, "503", 0, ""},
		"broken":                {"searxng", 500, "", "<html>", Later, "500", 0, ""},
		"a wrong key":           {"tavily", 401, "", `{"detail":{"error":"Unauthorized: missing or invalid API key."}}`, Refused, "its key is wrong, or used up", 0, "Unauthorized: missing or invalid API key."},
		"a key is wanted":       {"searxng", 401, "", "", Refused, "it wants a key", 0, ""},
		"no JSON format":        {"searxng", 403, "", "", Refused, "it must allow the format json", 0, ""},
		"forbidden":             {"brave", 403, "", "", Refused, "answers 403", 0, ""},
		"a bad query":           {"brave", 422, "", `{"error":{"detail":"Unable to validate request parameter(s)"}}`, Wrong, "422", 0, "Unable to validate request parameter(s)"},
		"gone":                  {"searxng", 404, "", "", Lost, "404", 0, ""},
		"a redirect":            {"tavily", 302, "Location: http://127.0.0.1:1/", "", Lost, "a redirect; put the URL where it really is", 0, ""},
		"no JSON":               {"searxng", 200, "", "<html>", Lost, "searxng answers HTML and not JSON: is its URL right?", 0, ""},
		"cut JSON":              {"brave", 200, "", `{"web":{"results":[{"title":"a"`, Lost, "what is no JSON", 0, ""},
		"other JSON":            {"tavily", 200, "", `{"answer":42}`, Lost, "JSON of another form", 0, ""},
		"other JSON for brave":  {"brave", 200, "", `{"type":"ErrorResponse"}`, Lost, "JSON of another form", 0, ""},
		"other types":           {"tavily", 200, "", `{"results":{"a":1}}`, Lost, "JSON of another form", 0, ""},
		"a list":                {"searxng", 200, "", `[]`, Lost, "JSON of another form", 0, ""},
		"too much":              {"searxng", 200, "", `{"results":[` + strings.Repeat(" ", searchBytes) + `]}`, Lost, "is over 2097152 bytes", 0, ""},
		"a bomb":                {"searxng", 200, "Content-Encoding: gzip", packed(strings.Repeat(" ", 4<<20)), Lost, "is over 2097152 bytes", 0, ""},
		"another encoding":      {"searxng", 200, "Content-Encoding: br", "x", Lost, "only gzip was asked for", 0, ""},
		"a cut body":            {"searxng", 200, "Content-Length: 100", `{"results":[]}`, Later, "ended before the page did", 0, ""},
		"an error with escapes": {"tavily", 400, "", `{"detail":"\u001b[31mred\nline"}`, Wrong, "400", 0, "red line"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if key, value, ok := strings.Cut(c.header, ": "); ok {
					w.Header().Set(key, value)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			defer server.Close()
			hits, _, err := searcher(t, server, c.backend).Search(t.Context(), "q", 5, 100)
			if e := wantsSearch(t, name, err, c.kind, c.why); e.After != c.after || e.Body != c.said || hits != nil {
				t.Errorf("%+v, %q", e, hits)
			}
		})
	}
}

// A search reaches its own server, which may be on this machine, and neither proxies nor anything that is redirected to; a fetch does not reach that server.
func TestSearchReachesItsServerAlone(t *testing.T) {
	t.Parallel()
	inner := listen(t, "127.0.0.1:0")
	var keys []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Authorization"))
		http.Redirect(w, r, "http://"+inner.Addr().String()+"/", http.StatusFound)
	}))
	defer server.Close()
	c := searcher(t, server, "tavily")
	_, _, err := c.Search(t.Context(), "q", 5, 100)
	wantsSearch(t, "a redirect", err, Lost, "a redirect")
	if want := []string{"Bearer " + searchKey}; !slices.Equal(keys, want) {
		t.Errorf("sent %q", keys)
	}
	p, err := c.Fetch(t.Context(), Request{URL: server.URL, Bytes: kept})
	wants(t, "a fetch of the search server", p, err, Refused, "")
	egresstest.Untouched(t, inner)

	silent := listen(t, "127.0.0.1:0")
	c, err = New(Options{Search: Search{Backend: "searxng", URL: "http://" + silent.Addr().String()}, Idle: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = c.Search(t.Context(), "q", 5, 100)
	wantsSearch(t, "no answer", err, Later, "no answer of 127.0.0.1")
	ctx, cancel := context.WithCancelCause(t.Context())
	errEnough := errors.New("enough")
	cancel(errEnough)
	if _, _, err := c.Search(ctx, "q", 5, 100); !errors.Is(err, errEnough) {
		t.Errorf("cancelled: %v", err)
	}
	silent.Close()
	_, _, err = c.Search(t.Context(), "q", 5, 100)
	wantsSearch(t, "nobody", err, Later, "no connection to 127.0.0.1")
	if c, err := New(Options{}); err != nil || c.Searches() != "" {
		t.Errorf("no search: %v, %v", c, err)
	} else {
		_, _, err = c.Search(t.Context(), "q", 5, 100)
		wantsSearch(t, "no search", err, Lost, "no search is configured")
	}
}

func TestSearchConfiguration(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s    Search
		want string // "" where it is good
	}{
		{Search{"searxng", "http://localhost:8888", ""}, ""}, {Search{"searxng", "https://searx.example.org/sub/", ""}, ""}, {Search{"searxng", "http://searxng:8080", ""}, ""}, {Search{"searxng", "http://[::1]:8080", ""}, ""},
		{Search{"brave", "", searchKey}, ""}, {Search{"tavily", "", searchKey}, ""}, {Search{"tavily", "http://127.0.0.1:1234", searchKey}, ""},
		{Search{"google", "", ""}, `backend "google": there are searxng, brave, tavily`}, {Search{"", "http://x", ""}, `backend ""`},
		{Search{"searxng", "", ""}, "url: searxng needs that of its server"}, {Search{"searxng", "ftp://x/", ""}, "url: write one that begins"}, {Search{"searxng", "localhost:8888", ""}, "url: write one that begins"},
		{Search{"searxng", "http://user:pw@x.example.com/", ""}, "without user"}, {Search{"searxng", "http://x.example.com/?q=", ""}, "without user"}, {Search{"searxng", "http://127.1/", ""}, "number in an odd form"},
		{Search{"brave", "", ""}, "key: brave needs one"}, {Search{"tavily", "http://api.example.com", searchKey}, "without encryption"}, {Search{"searxng", "http://searx.example.org", searchKey}, "without encryption"},
	} {
		err := c.s.Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.s, err, c.want)
		}
		if err != nil && c.s.Key != "" && strings.Contains(err.Error(), c.s.Key) {
			t.Errorf("the key is in %v", err)
		}
		if _, again := New(Options{Search: c.s}); c.s != (Search{}) && (again == nil) != (err == nil) {
			t.Errorf("%+v: New says %v", c.s, again)
		}
	}
	_, at, err := Search{Backend: "searxng", URL: "https://searx.example.org/sub/"}.server()
	if err != nil || at.String() != "https://searx.example.org/sub/search" {
		t.Errorf("%v, %v", at, err)
	}
	if u := (&url.URL{Scheme: "https", Host: "[::1]"}); hostPort(u) != "[::1]:443" {
		t.Errorf("%s", hostPort(u))
	}
}
