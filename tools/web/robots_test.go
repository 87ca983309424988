package web

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/temoto/robotstxt"
)

// What a robots.txt asks is obeyed, for the page and for where it redirects to; one that cannot be had asks nothing.
func TestRobots(t *testing.T) {
	t.Parallel()
	var file atomic.Value
	var asked atomic.Int32
	answer := func(h http.HandlerFunc) { file.Store(h) }
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			asked.Add(1)
			file.Load().(http.HandlerFunc)(w, r)
		case "/hop":
			http.Redirect(w, r, "/closed/page", http.StatusFound)
		default:
			fmt.Fprint(w, "open")
		}
	})
	text := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, s) }
	}
	const own = "User-agent: *\nDisallow: /\n\nUser-agent: Muster\nDisallow: /closed/\nAllow: /closed/but\nDisallow: /*.php$\nDisallow: /*?secret=\n"
	for name, c := range map[string]struct {
		robots http.HandlerFunc
		shut   []string
	}{
		"for this agent": {text(own), []string{"/closed/page", "/a.php", "/x?secret=1", "/hop"}},
		"for all":        {text("User-agent: *\nDisallow: /closed/\n"), []string{"/closed/page", "/closed/but", "/hop"}},
		"everything":     {text("User-agent: *\nDisallow: /\n"), []string{"/", "/closed/page", "/closed/but", "/a.php", "/x?secret=1", "/hop"}},
		"others":         {text("User-agent: googlebot\nDisallow: /\n"), nil},
		"empty":          {text(""), nil},
		"not found":      {http.NotFound, nil},
		"forbidden":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, nil},
		"broken":         {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, nil},
		"a page":         {text("<!DOCTYPE html><p>Disallow: /"), nil},
		"no text":        {text("\x00\x01\x02User-agent: *\nDisallow: /\n"), nil},
		"nonsense":       {text("Disallow: /\nUser-agent\n:::\n"), nil},
		"moved": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/other", http.StatusMovedPermanently)
		}, nil},
		"moved away": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusFound)
		}, nil},
		"cut off": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, own)
		}, nil},
		"many stars":  {text("User-agent: *\n" + strings.Repeat("Disallow: /*a*b*c*d\n", 20_000) + "Disallow: /closed/\n"), []string{"/closed/page", "/closed/but", "/hop"}},
		"far too big": {text("User-agent: *\nDisallow: /closed/page\n" + strings.Repeat("# comment\n", 200_000) + "Disallow: /a.php\n"), []string{"/closed/page", "/hop"}},
	} {
		answer(c.robots)
		client := s.client() // nothing is remembered
		for _, path := range []string{"/", "/closed/page", "/closed/but", "/a.php", "/x?secret=1", "/hop"} {
			p, err := client.Fetch(t.Context(), Request{URL: s.at(path), Bytes: kept})
			shut := false
			for _, one := range c.shut {
				shut = shut || one == path
			}
			if shut {
				wants(t, name+": "+path, p, err, Refused, "the robots.txt of site.example.com")
			} else if err != nil || p.Text != "open" {
				t.Errorf("%s: %s: %+v, %v", name, path, p, err)
			}
		}
	}
	answer(text("User-agent: *\nDisallow: /\n"))
	ignoring := s.client(func(o *Options) { o.IgnoreRobots = func(host string) bool { return host == "site.example.com" } })
	if p, err := ignoring.Fetch(t.Context(), Request{URL: s.at("/"), Bytes: kept}); err != nil || p.Text != "open" {
		t.Errorf("ignored: %+v, %v", p, err)
	}
	p, err := ignoring.Fetch(t.Context(), Request{URL: strings.Replace(s.at("/"), "site.", "other.", 1), Bytes: kept})
	wants(t, "another host", p, err, Refused, "the robots.txt of other.example.com")
	once := s.client()
	before := asked.Load()
	for range 5 {
		_, _ = once.Fetch(t.Context(), Request{URL: s.at("/"), Bytes: kept})
	}
	if n := asked.Load() - before; n != 1 {
		t.Errorf("robots.txt was asked for %d times", n)
	}
}

func TestFewStars(t *testing.T) {
	t.Parallel()
	text := "User-agent: *\n" + strings.Repeat("Disallow: /*x\n", robotsStars+7) + "Disallow: /plain\nUser-agent: *bot\n"
	got := string(fewStars([]byte(text)))
	if n := strings.Count(got, "/*x"); n != robotsStars || !strings.HasPrefix(got, "User-agent: *\n") || !strings.HasSuffix(got, "Disallow: /plain\nUser-agent: *bot\n") {
		t.Errorf("%d rules with a star, %q", n, got[len(got)-60:])
	}
	data, err := robotstxt.FromString(got)
	if err != nil || data.FindGroup(agentName).Test("/plain/x") {
		t.Errorf("%v", err)
	}
}

// Hosts are forgotten before they are too many.
func TestRobotsAreFew(t *testing.T) {
	t.Parallel()
	var c Client
	for i := range 3 * robotsHosts {
		c.robots.keep(fmt.Sprint(i), robotsFile{})
		if n := len(c.robots.known); n > robotsHosts {
			t.Fatalf("%d hosts are remembered", n)
		}
	}
}
