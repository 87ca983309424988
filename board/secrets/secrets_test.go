package secrets

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func redactor(t interface{ Fatal(...any) }, values map[string]string) *Redactor {
	r, err := New(values)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// encoders are ways to write a value, made with other code than the package's own where there is any. before and after are its neighbours.
var encoders = map[string]func(v, before, after string) string{
	"raw":        func(v, _, _ string) string { return v },
	"query":      func(v, _, _ string) string { return url.QueryEscape(v) },
	"path":       func(v, _, _ string) string { return url.PathEscape(v) },
	"query %20":  func(v, _, _ string) string { return strings.ReplaceAll(url.QueryEscape(v), "+", "%20") },
	"query low":  func(v, _, _ string) string { return lowerEscapes(url.QueryEscape(v)) },
	"path low":   func(v, _, _ string) string { return lowerEscapes(url.PathEscape(v)) },
	"hex":        func(v, _, _ string) string { return hex.EncodeToString([]byte(v)) },
	"HEX":        func(v, _, _ string) string { return strings.ToUpper(hex.EncodeToString([]byte(v))) },
	"hex around": func(v, b, a string) string { return hex.EncodeToString([]byte(b + v + a)) },
	"JSON":       func(v, _, _ string) string { b, _ := json.Marshal(v); return string(b) },
	"Go":         func(v, _, _ string) string { return strconv.Quote(v) },
	"Go ASCII":   func(v, _, _ string) string { return strconv.QuoteToASCII(v) },
	"HTML":       func(v, _, _ string) string { return html.EscapeString(v) },
	"base64":     func(v, b, a string) string { return base64.StdEncoding.EncodeToString([]byte(b + v + a)) },
	"base64 raw": func(v, b, a string) string { return base64.RawStdEncoding.EncodeToString([]byte(b + v + a)) },
	"base64 url": func(v, b, a string) string { return base64.URLEncoding.EncodeToString([]byte(b + v + a)) },
	"base64 76":  func(v, b, a string) string { return wrap(base64.StdEncoding.EncodeToString([]byte(b+v+a)), 76, "\n") },
	"base64 64":  func(v, b, a string) string { return wrap(base64.StdEncoding.EncodeToString([]byte(b+v+a)), 64, "\r\n") },
	"CRLF":       func(v, _, _ string) string { return strings.ReplaceAll(v, "\n", "\r\n") },
	"indented":   func(v, _, _ string) string { return strings.ReplaceAll(v, "\n", "\n\t  ") },
	"numbered": func(v, _, _ string) string {
		lines := strings.Split(v, "\n")
		for i := range lines {
			lines[i] = "  " + strconv.Itoa(i+1) + "→" + lines[i]
		}
		return strings.Join(lines, "\n")
	},
}

func lowerEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i:], bytes.ToLower(b[i:i+3]))
		}
	}
	return string(b)
}

func wrap(s string, width int, newline string) string {
	var b strings.Builder
	for len(s) > width {
		b.WriteString(s[:width] + newline)
		s = s[width:]
	}
	return b.String() + s
}

// secret is something that a secret may be.
func secret() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[A-Za-z0-9_-]{8,64}`),
		rapid.StringMatching(`[A-Za-z0-9+/]{40}={0,2}`),
		rapid.StringMatching(`[!-~]{8,30}`),
		rapid.StringMatching(`[a-z]{4,8}( [a-z]{4,8}){2,4}`),
		rapid.StringOfN(rapid.RuneFrom([]rune("aä中😀 \"'<&%\\/+=")), 8, 20, -1),
		rapid.Custom(func(t *rapid.T) string {
			lines := rapid.SliceOfN(rapid.StringMatching(`[A-Za-z0-9+/]{64}`), 1, 6).Draw(t, "lines")
			return "-----BEGIN X-----\n" + strings.Join(lines, "\n") + "\n-----END X-----"
		}),
	).Filter(func(s string) bool { return check("n", strings.Trim(s, "\r\n")) == nil && strings.TrimSpace(s) == s })
}

// around is text that holds no secret: what a secret is made of does not stand in it.
func around() *rapid.Generator[string] {
	return rapid.StringOfN(rapid.RuneFrom([]rune("  \n.,;:!?()…→│—\t#|")), 0, 200, -1)
}

func TestNoFormComesThrough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := secret().Draw(t, "value")
		r := redactor(t, map[string]string{"KEY": value, "OTHER": "another-secret-0123456789"})
		name := rapid.SampledFrom(sortedKeys(encoders)).Draw(t, "encoder")
		before, after := around().Draw(t, "before"), around().Draw(t, "after")
		written := encoders[name](value, before, after)
		text := before + "\n" + written + "\n" + after
		got := r.String(text)
		if !strings.Contains(got, "[redacted KEY]") {
			t.Fatalf("%s: %q in %q was not found: %q", name, value, text, got)
		}
		noPiece(t, name, value, written, got)
		if !strings.HasPrefix(got, before+"\n") && !strings.HasPrefix(name, "numbered") || !strings.HasSuffix(got, after) {
			t.Fatalf("%s: text around it changed: %q became %q", name, text, got)
		}
		if again := r.String(got); again != got {
			t.Fatalf("twice: %q became %q", got, again)
		}
	})
}

// noPiece fails where got holds 12 bytes in a row of what is secret of written.
func noPiece(t *rapid.T, encoder, value, written, got string) {
	const piece = 12
	secret := map[string]bool{}
	for _, s := range formsOf(strings.Trim(value, "\r\n")) {
		for i := 0; i+piece <= len(s); i++ {
			secret[s[i:i+piece]] = true
		}
	}
	for i := 0; i+piece <= len(got); i++ {
		if secret[got[i:i+piece]] && !strings.Contains("-----BEGIN X----------END X-----", got[i:i+piece]) {
			t.Fatalf("%s: %q of %q (%q) is in %q", encoder, got[i:i+piece], value, written, got)
		}
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func TestPartsOfAValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[A-Za-z0-9]{24,64}`).Draw(t, "value")
		r := redactor(t, map[string]string{"KEY": value})
		cut := rapid.IntRange(0, len(value)).Draw(t, "cut")
		got := r.String("head " + value[:cut] + "… (+17 chars)")
		rest := r.String("[… left out]\n" + value[cut:] + "\ntail")
		if n := shownOf(value, got) + shownOf(value, rest); n > len(value)/2 {
			t.Fatalf("%d of %d characters of %q come through: %q and %q", n, len(value), value, got, rest)
		}
	})
}

// shownOf is how long the longest piece of value is that text holds.
func shownOf(value, text string) int {
	const chance = 4 // letters that are also in the words around
	for n := len(value); n > chance; n-- {
		for i := 0; i+n <= len(value); i++ {
			if strings.Contains(text, value[i:i+n]) {
				return n
			}
		}
	}
	return 0
}

// TestPartsBesideACut: where a text was cut within a value, little of it is left to know it by.
func TestPartsBesideACut(t *testing.T) {
	const value = "Zq0001020304050607080910111213141516171819202122232425"
	r := redactor(t, map[string]string{"TOKEN": value})
	for n := 8; n < len(value); n++ {
		for text, want := range map[string]string{
			"echo " + value[:n] + "… (+9 chars)": "echo [redacted TOKEN]… (+9 chars)",
			"…" + value[n-8:]:                    "…[redacted TOKEN]",
		} {
			if got := r.String(text); got != want {
				t.Errorf("%q: %q", text, got)
			}
		}
	}
	for _, harmless := range []string{"echo Zq00010203 and more", "Zq00010…", "…232425 and"} {
		if got := r.String(harmless); got != harmless {
			t.Errorf("%q: %q", harmless, got)
		}
	}
}

func TestStreamIsLikeTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := secret().Draw(t, "value")
		values := map[string]string{"KEY": value}
		if rapid.Bool().Draw(t, "two") {
			values["OTHER"] = "another-secret-0123456789"
		}
		r := redactor(t, values)
		var text strings.Builder
		for range rapid.IntRange(1, 5).Draw(t, "times") {
			name := rapid.SampledFrom(sortedKeys(encoders)).Draw(t, "encoder")
			text.WriteString(around().Draw(t, "around") + encoders[name](value, "", ""))
			text.WriteString(rapid.SampledFrom([]string{"", " ", "\n", " ghp_" + strings.Repeat("aB3", 12) + " ", " https://u:pw0rd@h/ "}).Draw(t, "more"))
		}
		var out bytes.Buffer
		w := r.Writer(&out)
		chunks := rapid.SliceOfN(rapid.IntRange(1, 40), 1, 8).Draw(t, "chunks")
		for rest, i := text.String(), 0; rest != ""; i++ {
			n := min(chunks[i%len(chunks)], len(rest))
			if k, err := w.Write([]byte(rest[:n])); k != n || err != nil {
				t.Fatal(k, err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		want, got := r.String(text.String()), out.String()
		if strings.Contains(value, "\n") { // found line by line where its lines come apart
			lines := slices.DeleteFunc(strings.Split(value, "\n"), func(l string) bool { return strings.HasPrefix(l, "-----") })
			if inner := strings.Join(lines, "\n"); shownOf(inner, got) > shownOf(inner, want) {
				t.Fatalf("stream %q\nshows more than\nwhole  %q", got, want)
			}
		} else if got != want {
			t.Fatalf("stream %q\nwhole  %q", got, want)
		}
	})
}

// What cannot be the beginning of a secret is not held back: a server's "ready" is seen when it is written.
func TestStreamPassesAtOnce(t *testing.T) {
	r := redactor(t, map[string]string{"KEY": "Kq7-secret-value", "PASS": "Zx9 other secret"})
	var out bytes.Buffer
	w := r.Writer(&out)
	for _, line := range []string{"ready\n", "listening on http://127.0.0.1:8080/ now.\n", "half: Kq7-sec"} {
		if _, err := io.WriteString(w, line); err != nil {
			t.Fatal(err)
		}
	}
	if got := out.String(); got != "ready\nlistening on http://127.0.0.1:8080/ now.\nhalf: " {
		t.Errorf("before the end: %q", got)
	}
	if _, err := io.WriteString(w, "ret-value\n"); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.HasSuffix(got, "half: [redacted KEY]\n") {
		t.Errorf("after it: %q", got)
	}
}

func TestCleanTextIsUnchanged(t *testing.T) {
	r := redactor(t, map[string]string{"KEY": "tr0ub4dor&3 horse", "PEM": "-----BEGIN Y-----\nQUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=\n-----END Y-----"})
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{
				"the", "key", "token", "sk-", "task-force", "eyJ", "SUPER", "AKIA", "ghp_", "-----", "-----BEGIN PRIVATE KEY----- (", "-----END", "Authorization", "Bearer",
				"http://host:80/a@b", "nats://127.0.0.1:4222", "%20", `\n`, "\n", "tr0ub4dor", "[redacted KEY]", "[redacted ", "/", "=", "0123456789abcdef",
			})).Draw(t, "words"), rapid.SampledFrom([]string{" ", "\n", ", "}).Draw(t, "between"))
		})).Draw(t, "s")
		if got := r.String(s); got != s {
			t.Fatalf("%q became %q", s, got)
		}
		if got := r.JSON([]byte(s)); string(got) != s {
			t.Fatalf("JSON: %q became %q", s, got)
		}
	})
}

func TestJSONStaysJSON(t *testing.T) {
	type doc struct {
		A    string            `json:"a"`
		N    int               `json:"n"`
		List []string          `json:"list"`
		Map  map[string]string `json:"map"`
		Raw  json.RawMessage   `json:"raw"`
	}
	rapid.Check(t, func(t *rapid.T) {
		value := secret().Draw(t, "value")
		r := redactor(t, map[string]string{"KEY": value, "NUMBER": "12345678"})
		text := rapid.Custom(func(t *rapid.T) string {
			return around().Draw(t, "before") + rapid.SampledFrom([]string{"", value, "12345678", "null", `{"x":1}`}).Draw(t, "what") + around().Draw(t, "after")
		})
		inner, err := json.Marshal(map[string]string{"deep": text.Draw(t, "deep")})
		if err != nil {
			t.Fatal(err)
		}
		d := doc{A: text.Draw(t, "a"), N: 12345678, List: rapid.SliceOf(text).Draw(t, "list"), Map: map[string]string{"k" + text.Draw(t, "key"): text.Draw(t, "map")}, Raw: inner}
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(rapid.Bool().Draw(t, "html"))
		if err := enc.Encode(d); err != nil {
			t.Fatal(err)
		}
		got := r.JSON(b.Bytes())
		var back doc
		if err := json.Unmarshal(got, &back); err != nil {
			t.Fatalf("%v: %s became %s", err, b.String(), got)
		}
		if back.A != r.String(d.A) || back.N != d.N || len(back.List) != len(d.List) {
			t.Fatalf("%s became %s", b.String(), got)
		}
		for i := range d.List {
			if back.List[i] != r.String(d.List[i]) {
				t.Fatalf("item %d: %q became %q", i, d.List[i], back.List[i])
			}
		}
		for k, v := range d.Map {
			if back.Map[r.String(k)] != r.String(v) {
				t.Fatalf("%q: %q became %q", k, v, back.Map)
			}
		}
		if again := r.JSON(got); !bytes.Equal(again, got) {
			t.Fatalf("twice: %s became %s", got, again)
		}
	})
}

func TestOverlappingValuesLeaveNothing(t *testing.T) {
	r := redactor(t, map[string]string{"A": "abcdefgh1234", "B": "1234ijklmnop", "C": "ijklmnop"})
	for in, want := range map[string]string{
		"abcdefgh1234ijklmnop": "[redacted A]",
		"x ijklmnop y":         "x [redacted C] y",
		"1234ijklmnop":         "[redacted B]",
	} {
		if got := r.String(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestRefusedValues(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"K", "short77", "under 8 characters"},
		{"K", "", "under 8 characters"},
		{"K", "\n\nabc\n\n\n\n\n\n", "under 8 characters"},
		{"K", "x [redacted y] z", "the words that stand in its place"},
		{"K", strings.Repeat("x", maxValue+1), "at most"},
		{"", "long enough", "for its name"},
		{"a]b", "long enough", "for its name"},
		{"a\nb", "long enough", "for its name"},
		{`a"b`, "long enough", "for its name"},
	} {
		if _, err := New(map[string]string{c.name: c.value}); err == nil || !strings.Contains(err.Error(), c.want) || c.value != "" && strings.Contains(err.Error(), c.value) {
			t.Errorf("%q: %v, want %q and not the value", c.name, err, c.want)
		}
	}
}

func TestWithAddsAndKeeps(t *testing.T) {
	var none *Redactor
	if none.String("ghp_"+strings.Repeat("a1", 20)) == "" || string(none.JSON([]byte(`"x"`))) != `"x"` {
		t.Error("nil changes texts")
	}
	var out bytes.Buffer
	w := none.Writer(&out)
	if _, err := io.WriteString(w, "as it is"); err != nil || w.Close() != nil || out.String() != "as it is" {
		t.Errorf("nil stream: %q", out.String())
	}
	first, err := none.With(map[string]string{"A": "first-value"})
	if err != nil {
		t.Fatal(err)
	}
	both, err := first.With(map[string]string{"B": "second-value"})
	if err != nil {
		t.Fatal(err)
	}
	const text = "first-value second-value"
	if first.String(text) != "[redacted A] second-value" || both.String(text) != "[redacted A] [redacted B]" {
		t.Errorf("%q, %q", first.String(text), both.String(text))
	}
	if same, err := both.With(nil); err != nil || same != both {
		t.Error("With nothing is another")
	}
}

func TestEnvironment(t *testing.T) {
	env := []string{
		"ANTHROPIC_API_KEY=value-of-anthropic", "GITHUB_TOKEN=value-of-github", "db_password=value-of-db", "AWS_SECRET_ACCESS_KEY=value-of-aws",
		"X_CREDENTIALS=value-of-x", "NATS_URL=nats://u:value-of-nats@h:1,nats://g", "DATABASE_URL=postgres://u:value-of-pg@h/d", "QUEUE_URL=nats://value-of-queue@h",
		"GOOGLE_APPLICATION_CREDENTIALS=/home/u/value-of-path", "MY_TOKEN=short", "HOME=/home/value-of-home", "MONKEY=value-of-monkey", "NAMED=value-of-named", "EMPTY_TOKEN=",
		"MULTI_SECRET=value-of-multi\nline-two-of-multi\n",
	}
	r, err := FromEnvironment(env, []string{"NAMED", "NOT_SET"})
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range env {
		_, v, _ := strings.Cut(kv, "=")
		i := strings.Index(v, "value-of-")
		if i < 0 {
			continue
		}
		word := strings.FieldsFunc(v[i:], func(c rune) bool { return strings.ContainsRune("@\n", c) })[0]
		hidden := r.String(word) != word
		if want := !strings.Contains(word, "path") && !strings.Contains(word, "home") && !strings.Contains(word, "monkey"); word != "value-of-multi" && hidden != want {
			t.Errorf("%s: %q redacted: %v", kv, word, hidden)
		}
	}
	if got := r.String("value-of-multi\nline-two-of-multi"); got != "[redacted MULTI_SECRET]" {
		t.Errorf("several lines: %q", got)
	}
	if got := r.String("x line-two-of-multi y"); got != "x [redacted MULTI_SECRET] y" {
		t.Errorf("one line of several: %q", got)
	}
	if _, err := FromEnvironment([]string{"PIN=1234"}, []string{"PIN"}); err == nil || !strings.Contains(err.Error(), "PIN") {
		t.Errorf("a named value that is too short: %v", err)
	}
}
