package policy_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"muster/board/policy"
)

func TestReaches(t *testing.T) {
	for _, c := range []struct {
		rung, least string
		want        bool
	}{
		{"full", "full", true}, {"full", "landlock", true}, {"landlock", "full", false}, {"off", "limits", false},
		{"off", "", true}, {"", "", true}, {"", "limits", false}, {"pidns", "limits", false}, {"full", "fuller", false},
	} {
		if got := policy.Reaches(c.rung, c.least); got != c.want {
			t.Errorf("%q reaches %q: %v", c.rung, c.least, got)
		}
	}
}

func TestNarrow(t *testing.T) {
	host := policy.Sandbox{
		Min: "landlock", Network: "proxy", Domains: []string{"example.com", "*.golang.org"},
		Limits: policy.Limits{Processes: 100, Memory: 4 << 30},
	}
	for name, c := range map[string]struct {
		host, job, want policy.Sandbox
		wrong           string
	}{
		"nothing asked": {host: host, want: host},
		"zero host":     {want: policy.Sandbox{Network: "none"}},
		"narrower": {
			host: host, job: policy.Sandbox{Min: "full", Domains: []string{"proxy.golang.org"}, Limits: policy.Limits{Memory: 1 << 30, CPUSecs: 5}},
			want: policy.Sandbox{Min: "full", Network: "proxy", Domains: []string{"proxy.golang.org"}, Limits: policy.Limits{Processes: 100, Memory: 1 << 30, CPUSecs: 5}},
		},
		"weaker rung asked": {host: host, job: policy.Sandbox{Min: "limits"}, want: host},
		"no network":        {host: host, job: policy.Sandbox{Network: "none"}, want: policy.Sandbox{Min: "landlock", Network: "none", Limits: host.Limits}},
		"open host, proxy asked": {
			host: policy.Sandbox{Network: "open"}, job: policy.Sandbox{Network: "proxy", Domains: []string{"example.com"}},
			want: policy.Sandbox{Network: "proxy", Domains: []string{"example.com"}},
		},
		"wider network":  {job: policy.Sandbox{Domains: []string{"example.com"}}, wrong: "network proxy: this host allows none"},
		"other domains":  {host: host, job: policy.Sandbox{Domains: []string{"golang.org", "example.com"}}, wrong: "domains golang.org: this host allows example.com, *.golang.org"},
		"wider wildcard": {host: host, job: policy.Sandbox{Domains: []string{"*.com"}}, wrong: "domains *.com"},
		"higher limits": {
			host: host, job: policy.Sandbox{Limits: policy.Limits{Memory: 8 << 30, Processes: 101}},
			wrong: "limit processes 101: this host allows 100; limit memory 8GiB: this host allows 4GiB",
		},
		"open":      {host: policy.Sandbox{Network: "open"}, job: policy.Sandbox{Network: "open"}, wrong: "no job can ask for open"},
		"off":       {job: policy.Sandbox{Min: "off"}, wrong: "no job can ask for off"},
		"no limit":  {job: policy.Sandbox{Limits: policy.Limits{File: -1}}, wrong: "a job cannot take a limit away"},
		"both ways": {host: host, job: policy.Sandbox{Network: "none", Domains: []string{"example.com"}}, wrong: "they go with network proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.host.Narrow(c.job)
			if c.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), c.wrong) {
					t.Fatalf("error %v, want %s", err, c.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func domains() *rapid.Generator[[]string] {
	return rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a.b", "*.b", "*.a.b", "x.a.b", "c", "*.c", "d.c"}), 0, 4, rapid.ID[string])
}

func drawn(t *rapid.T, name string, networks []string) policy.Sandbox {
	s := policy.Sandbox{
		Min:     rapid.SampledFrom(append(policy.Rungs()[:6], "")).Draw(t, name+" min"),
		Network: rapid.SampledFrom(networks).Draw(t, name+" network"),
		Limits:  policy.Limits{Memory: policy.Bytes(rapid.IntRange(0, 3).Draw(t, name+" memory")), Processes: rapid.IntRange(0, 3).Draw(t, name+" processes")},
	}
	if s.Network == "" || s.Network == "proxy" {
		s.Domains = domains().Draw(t, name+" domains")
	}
	return s
}

// What a job runs under never allows anything that its host or the job itself does not.
func TestNarrowNeverWidens(t *testing.T) {
	names := []string{"a.b", "b", "x.b", "y.a.b", "x.a.b", "c", "d.c", "e.c"}
	reach := func(s policy.Sandbox, name string) bool {
		return s.Network == "open" || s.Network == "proxy" && policy.Within(name, s.Domains)
	}
	rapid.Check(t, func(t *rapid.T) {
		host := drawn(t, "host", policy.Networks())
		plan, job := drawn(t, "plan", []string{"", "none", "proxy"}), drawn(t, "job", []string{"", "none", "proxy"})
		asked := plan.With(job)
		got, err := host.Narrow(asked)
		if err != nil {
			return
		}
		for _, n := range names {
			if reach(got, n) && !reach(host, n) {
				t.Fatalf("%s is reached by %+v and not by the host", n, got)
			}
			for _, s := range []policy.Sandbox{plan, job} {
				if reach(got, n) && (s.Network == "none" || len(s.Domains) > 0 && !policy.Within(n, s.Domains)) {
					t.Fatalf("%s is reached by %+v and not asked for by %+v", n, got, s)
				}
			}
		}
		for _, s := range []policy.Sandbox{host, plan, job} {
			if !policy.Reaches(got.Min, s.Min) {
				t.Fatalf("min %q is weaker than %q", got.Min, s.Min)
			}
			if l := s.Limits; l.Memory > 0 && got.Limits.Memory > l.Memory || l.Processes > 0 && got.Limits.Processes > l.Processes {
				t.Fatalf("limits %+v are higher than %+v", got.Limits, l)
			}
		}
		again, err := got.Narrow(asked)
		if err != nil || !cmp.Equal(again, got) {
			t.Fatalf("not the same again: %v %s", err, cmp.Diff(got, again))
		}
	})
}

func TestOver(t *testing.T) {
	plan := policy.Sandbox{Min: "full", Network: "proxy", Domains: []string{"example.com"}, Limits: policy.Limits{Memory: 5, Processes: 6}}
	for _, c := range []struct{ job, want policy.Sandbox }{
		{policy.Sandbox{}, plan},
		{policy.Sandbox{Network: "none", Limits: policy.Limits{Memory: 7}}, policy.Sandbox{Min: "full", Network: "none", Limits: policy.Limits{Memory: 7, Processes: 6}}},
		{policy.Sandbox{Min: "landlock", Domains: []string{"a.b"}}, policy.Sandbox{Min: "landlock", Network: "proxy", Domains: []string{"a.b"}, Limits: plan.Limits}},
	} {
		if diff := cmp.Diff(c.want, c.job.Over(plan)); diff != "" {
			t.Errorf("%+v: %s", c.job, diff)
		}
	}
}

func TestDomains(t *testing.T) {
	for _, d := range []string{"example.com", "*.example.com", "a_b.example", "xn--bcher-kva.example"} {
		if err := (policy.Sandbox{Domains: []string{d}}).CheckHost(); err != nil {
			t.Errorf("%q: %v", d, err)
		}
	}
	for _, d := range []string{"", "*", "*.", "*.*.com", "Example.com", "1.2.3.4", "127.1", "0x7f000001", "[::1]", "::1", "a..b", "a.b.", "-a.b", "a b", "http://a.b", "a.b:443", "büch.er",
		"localhost", "*.localhost", "printer", "*.internal", "nas.local", "metadata.goog"} {
		if err := (policy.Sandbox{Domains: []string{d}}).CheckHost(); err == nil {
			t.Errorf("%q is taken", d)
		}
	}
}

func TestDomainMatches(t *testing.T) {
	matches := func(host string) bool {
		return slices.ContainsFunc([]string{"Go.Dev.", "*.example.org", "192.0.2.1", "2001:db8::1"}, func(pattern string) bool {
			d, err := policy.ParseDomain(pattern)
			if err != nil {
				t.Fatal(err)
			}
			return d.Matches(host)
		})
	}
	for host, want := range map[string]bool{
		"go.dev": true, "GO.DEV": true, "go.dev.": true, "x.go.dev": false, "notgo.dev": false, "go.dev..": false, "go.dev:443": false,
		"a.example.org": true, "a.b.example.org": true, "example.org": false, "aexample.org": false, ".example.org": false,
		"192.0.2.1": true, "192.0.2.10": false, "::ffff:192.0.2.1": true, "3221225985": false, "0xc0000201": false, "192.0.2.1.": false,
		"[2001:db8::1]": true, "2001:DB8:0::1": true, "2001:db8::1%lo": false, "xn--g-fka.dev": false, "gö.dev": false, "": false, "*": false,
	} {
		if got := matches(host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
	for _, wrong := range []string{"a b", "x/y", "http://a.b", "a.b:80", "*.1.2.3.4", "a.*.b", "me@a.b"} {
		if _, err := policy.ParseDomain(wrong); err == nil || !strings.Contains(err.Error(), "domain ") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

func TestBytes(t *testing.T) {
	for in, want := range map[string]policy.Bytes{"0": 0, "1024": 1024, "4GiB": 4 << 30, "1.5 GB": 1_500_000_000, "512MiB": 512 << 20, "7B": 7, "-1": -1} {
		if got, err := policy.ParseBytes(in); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "GiB", "4 gib", "1.5", "1e30", "NaN", "Inf", "4GiBB", "9999999TiB"} {
		if got, err := policy.ParseBytes(in); err == nil {
			t.Errorf("%q: %d", in, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		b := policy.Bytes(rapid.Int64Range(0, 1<<50).Draw(t, "bytes"))
		if got, err := policy.ParseBytes(b.String()); err != nil || got != b {
			t.Fatalf("%s is read as %d, %v", b, got, err)
		}
	})
}

func TestYAMLAndJSON(t *testing.T) {
	var s policy.Sandbox
	in := "min: full\nnetwork: proxy\ndomains: [example.com]\nlimits: {processes: 64, memory: &m 1GiB, file: *m, cpu_secs: 60, disk: 2048, disk_files: 9}\n"
	if err := yaml.Unmarshal([]byte(in), &s); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"min":"full","network":"proxy","domains":["example.com"],"limits":{"processes":64,"memory":1073741824,"cpu_secs":60,"file":1073741824,"disk":2048,"disk_files":9}}`
	if string(data) != want {
		t.Errorf("got  %s\nwant %s", data, want)
	}
	for in, want := range map[string]string{
		"limits:\n  memory: lots": `line 2: "lots" is no size`,
		"limits:\n  memory: [1]":  "line 2: want a size",
	} {
		if err := yaml.Unmarshal([]byte(in), &s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestRulesAreBounded(t *testing.T) {
	if err := (policy.Rules{Allow: []string{"run_command(git *)"}, Deny: []string{"web_fetch"}}).Check(); err != nil {
		t.Error(err)
	}
	for _, r := range []policy.Rules{
		{Allow: slices.Repeat([]string{"x"}, 1_001)}, {Ask: []string{" "}}, {Deny: []string{strings.Repeat("x", 2_001)}},
	} {
		if r.Check() == nil {
			t.Errorf("%d, %d, %d rules are taken", len(r.Allow), len(r.Ask), len(r.Deny))
		}
	}
}
