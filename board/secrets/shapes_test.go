package secrets

import (
	"strings"
	"testing"
)

// The keys are made up, and written in two pieces so that nothing takes this file for one that leaks.
func TestShapes(t *testing.T) {
	r := redactor(t, nil)
	word := func(n int) string { return strings.Repeat("aB3dE6gH9k", n/10+1)[:n] }
	upper := func(n int) string { return strings.Repeat("AB3DE6GH2K", n/10+1)[:n] }
	pem := "-----BEGIN RSA PRIVATE " + "KEY-----\n" + word(64) + "\n" + word(64) + "\n" + word(20) + "==\n-----END RSA PRIVATE " + "KEY-----"
	for _, c := range []struct{ name, in, want string }{
		{"AWS", "id AKIA" + upper(16) + ".", "id [redacted AWS key]."},
		{"AWS, temporary", "ASIA" + upper(16), "[redacted AWS key]"},
		{"AWS, too long", "AKIA" + upper(17), "AKIA" + upper(17)},
		{"AWS, within a word", "xAKIA" + upper(16), "xAKIA" + upper(16)},
		{"AWS, after an escape", `a\nAKIA` + upper(16) + `\n`, `a\n[redacted AWS key]\n`},
		{"GitHub", "token=ghp_" + word(36), "token=[redacted GitHub token]"},
		{"GitHub, fine", "github_pat_" + word(22) + "_" + word(59), "[redacted GitHub token]"},
		{"GitHub, only its name", "a ghp_ token", "a ghp_ token"},
		{"GitLab", "glpat-" + word(20), "[redacted GitLab token]"},
		{"Slack", "xoxb-" + "123456789012-" + word(24), "[redacted Slack token]"},
		{"Slack, hook", "https://hooks.slack.com/services/T00000000/B00000000/" + word(24), "https://[redacted Slack token]"},
		{"Anthropic", "sk-ant-" + "api03-" + word(80) + "-AA", "[redacted Anthropic key]"},
		{"OpenAI", "sk-" + word(48), "[redacted OpenAI key]"},
		{"OpenAI, project", "sk-proj-" + word(60), "[redacted OpenAI key]"},
		{"OpenAI, a CSS class", "sk-loading-indicator-large-and-long", "sk-loading-indicator-large-and-long"},
		{"OpenAI, a word", "task-" + word(48), "task-" + word(48)},
		{"Google", "AIza" + word(35), "[redacted Google key]"},
		{"Google, too long", "AIza" + word(36), "AIza" + word(36)},
		{"Stripe", "sk_live_" + word(24), "[redacted Stripe key]"},
		{"npm", "npm_" + word(36), "[redacted npm token]"},
		{"PyPI", "pypi-AgEIcHlwaS5vcmc" + word(60), "[redacted PyPI token]"},
		{"Hugging Face", "hf_" + word(34), "[redacted Hugging Face token]"},
		{"JWT", "a eyJ" + word(20) + ".eyJ" + word(30) + "." + word(43) + " b", "a [redacted JWT] b"},
		{"JWT, two parts", "eyJ" + word(20) + ".eyJ" + word(30), "eyJ" + word(20) + ".eyJ" + word(30)},
		{"nkey", "SU" + upper(56), "[redacted nkey seed]"},
		{"nkey, public", "UA" + upper(54), "UA" + upper(54)},
		{"nkey, within a word", "XSU" + upper(56), "XSU" + upper(56)},
		{"PEM", "x\n" + pem + "\ny", "x\n[redacted private key]\ny"},
		{"PEM, cut", "x\n" + pem[:120] + "[… left out]", "x\n[redacted private key][… left out]"},
		{"PEM, escaped", strings.ReplaceAll(`"`+pem+`"`, "\n", `\n`), `"[redacted private key]"`},
		{"PEM, numbered", "1→" + strings.ReplaceAll(pem, "\n", "\n2→"), "1→[redacted private key]"},
		{"PEM, numbered and cut", "1→" + strings.ReplaceAll(pem[:150], "\n", "\n2→") + "\n[…", "1→[redacted private key][…"},
		{"PEM, words about it", "begins with -----BEGIN PRIVATE " + "KEY----- and is followed by many lines of base64", ""},
		{"PEM, a certificate", "-----BEGIN CERTIFICATE-----\n" + word(64), ""},
		{"bearer", "Authorization: Bearer " + word(24), "Authorization: Bearer [redacted authorization]"},
		{"bearer in JSON", `{"authorization":"Bearer ` + word(24) + `"}`, `{"authorization":"Bearer [redacted authorization]"}`},
		{"bearer in JSON in a string", `{\"Authorization\": \"Bearer ` + word(24) + `\"}`, `{\"Authorization\": \"Bearer [redacted authorization]\"}`},
		{"basic", "curl -H 'Authorization: Basic " + word(24) + "=='", "curl -H 'Authorization: Basic [redacted authorization]'"},
		{"bearer of a variable", "Authorization: Bearer $TOKEN", ""},
		{"bearer, words", "an authorization: token is needed", ""},
		{"password", "nats://user:hunter2@host:4222", "nats://user:[redacted password]@host:4222"},
		{"password, quoted", `"postgres://u:p%40ss@h/db"`, `"postgres://u:[redacted password]@h/db"`},
		{"password, variable", "https://u:$PASS@h", ""},
		{"password, hidden", "https://u:xxxxx@h https://u:***@h", ""},
		{"no password", "http://host:8080/a@b http://u@h ssh://git@h:22 a://b c:d@e", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.want == "" {
				c.want = c.in
			}
			if got := r.String(c.in); got != c.want {
				t.Errorf("%q\n got %q\nwant %q", c.in, got, c.want)
			}
			if got := r.String(c.want); got != c.want {
				t.Errorf("twice: %q became %q", c.want, got)
			}
			var out strings.Builder
			w := r.Writer(&out)
			for i := range len(c.in) {
				if _, err := w.Write([]byte{c.in[i]}); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil || out.String() != c.want {
				t.Errorf("byte for byte: %q, %v", out.String(), err)
			}
		})
	}
}

// What makes a search begin again at every byte takes a thousand times as long as a linear one, far past the time limit of a test run.
func TestTimeIsLinear(t *testing.T) {
	const n = 1 << 18
	r := redactor(t, map[string]string{"A": strings.Repeat("a", 200), "B": strings.Repeat("ab", 400), "C": strings.Repeat("line of text\n", 100)})
	for name, s := range map[string]string{
		"one letter":       strings.Repeat("a", n),
		"two letters":      strings.Repeat("ab", n),
		"lines":            strings.Repeat("line of text", n/12),
		"broken":           strings.Repeat("aaaaaaaa\n", n/8),
		"begun keys":       strings.Repeat("-sk-", n),
		"begun JWTs":       strings.Repeat("-eyJ", n),
		"begun JWTs, dots": strings.Repeat("eyJaaaaaaaaaaaaaaaa.", n/20),
		"begun blocks":     strings.Repeat("-----BEGIN PRIVATE KEY-----", n/27),
		"begun ends":       "-----BEGIN PRIVATE KEY-----" + strings.Repeat("-----END ", n/9),
		"dashes":           strings.Repeat("-", n),
		"slacks":           strings.Repeat("xoxb-", n/5),
		"addresses":        strings.Repeat("a://b:", n/6),
		"headers":          strings.Repeat("authorization:", n/14),
		"marks":            strings.Repeat("[redacted A", n/11),
		"backslashes":      strings.Repeat(`\`, n),
		"quotes":           strings.Repeat(`"\"`, n),
	} {
		if got := r.String(s); len(got) > 2*len(s) {
			t.Errorf("%s: %d bytes became %d", name, len(s), len(got))
		}
		if got := r.JSON([]byte(s)); len(got) > 2*len(s) {
			t.Errorf("%s: %d bytes of JSON became %d", name, len(s), len(got))
		}
	}
}

func FuzzRedactor(f *testing.F) {
	f.Add("correct horse battery", "x correct horse battery y", uint8(3))
	f.Add("-----BEGIN X-----\nabc\n-----END X-----", "Authorization: Bearer abcdefgh", uint8(1))
	f.Fuzz(func(t *testing.T, value, text string, chunk uint8) {
		r, err := New(map[string]string{"KEY": value})
		if err != nil || len(value) > 1<<10 || len(text) > 4<<10 {
			t.Skip() // a long value that is like itself costs as much for each byte
		}
		value = strings.Trim(value, "\r\n")
		planted := text + value + text
		got := r.String(planted)
		if strings.Contains(got, value) && !strings.Contains("[redacted KEY]", value) && !strings.Contains(text, "[redacted ") {
			t.Fatalf("%q comes through in %q", value, got)
		}
		var out strings.Builder
		w := r.Writer(&out)
		for rest := planted; rest != ""; {
			n := min(int(chunk)+1, len(rest))
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if streamed := out.String(); strings.Contains(streamed, value) && !strings.Contains("[redacted KEY]", value) && !strings.Contains(text, "[redacted ") {
			t.Fatalf("%q comes through the stream: %q", value, streamed)
		}
		if len(r.JSON([]byte(planted))) == 0 && planted != "" {
			t.Fatal("JSON lost everything")
		}
	})
}
