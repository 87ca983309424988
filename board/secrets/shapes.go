package secrets

import "strings"

// shape is a kind of key that is known by how it looks: a beginning that nothing else has, and letters of one kind behind it.
type shape struct {
	name    string   // of the kind
	begins  []string // with one of these
	letters string   // ranges and single letters: "a-z0-9_"
	least   int      // letters behind the beginning
	most    int      // 0: no bound but maxShape; more than that many is something else
	match   func(s string, i int) found
}

// found is what stands at a place of a text: a secret, or the beginning of one that the text ends in.
type found struct {
	from, to int // none: to is 0
	open     bool
	past     int // no other of its kind begins before, where that is known
}

const (
	maxShape = 16 << 10 // bytes of a key
	maxBlock = 64 << 10 // bytes of a private key
)

const (
	alnum  = "A-Za-z0-9"
	urlish = "A-Za-z0-9_-"
)

var shapes = []shape{
	{name: "AWS key", begins: []string{"AKIA", "ASIA", "ABIA", "ACCA"}, letters: "A-Z0-9", least: 16, most: 16},
	{name: "GitHub token", begins: []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, letters: alnum, least: 30},
	{name: "GitHub token", begins: []string{"github_pat_"}, letters: alnum + "_", least: 30},
	{name: "GitLab token", begins: []string{"glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glagent-"}, letters: urlish, least: 20},
	{name: "Slack token", begins: []string{"xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xoxe.", "xapp-"}, letters: alnum + ".-", least: 20},
	{name: "Slack token", begins: []string{"hooks.slack.com/services/"}, letters: alnum + "/", least: 20},
	{name: "Anthropic key", begins: []string{"sk-ant-"}, letters: urlish, least: 20},
	{name: "OpenAI key", begins: []string{"sk-"}, match: openAI},
	{name: "Google key", begins: []string{"AIza"}, letters: urlish, least: 35, most: 35},
	{name: "Google key", begins: []string{"GOCSPX-", "ya29."}, letters: urlish, least: 24},
	{name: "Stripe key", begins: []string{"sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"}, letters: alnum, least: 16},
	{name: "npm token", begins: []string{"npm_"}, letters: alnum, least: 36},
	{name: "PyPI token", begins: []string{"pypi-AgE"}, letters: urlish, least: 40},
	{name: "Hugging Face token", begins: []string{"hf_"}, letters: alnum, least: 30},
	{name: "JWT", begins: []string{"eyJ"}, match: jwt},
	{name: "nkey seed", begins: []string{"SU", "SA", "SO", "SN", "SC", "SX", "SP"}, letters: "A-Z2-7", least: 56, most: 56},
	{name: "private key", begins: []string{"-----BEGIN "}, match: privateKey},
	{name: "authorization", begins: []string{"authorization", "Authorization", "AUTHORIZATION"}, match: authorization},
	{name: "password", begins: []string{"://"}, match: userInfo},
}

// shapeTable finds where a shape may begin, by its first two bytes.
type shapeTable struct {
	pairs   [1 << 13]uint8 // bits
	byFirst [256][]int
	letters []*[256]bool // by shape
	longest int
}

var table = newShapeTable()

func newShapeTable() *shapeTable {
	t := &shapeTable{letters: make([]*[256]bool, len(shapes))}
	for n, sh := range shapes {
		t.letters[n] = letterSet(sh.letters)
		for _, b := range sh.begins {
			pair := uint16(b[0]) | uint16(b[1])<<8
			t.pairs[pair>>3] |= 1 << (pair & 7)
			t.longest = max(t.longest, len(b))
			if list := t.byFirst[b[0]]; len(list) == 0 || list[len(list)-1] != n {
				t.byFirst[b[0]] = append(list, n)
			}
		}
	}
	return t
}

func letterSet(ranges string) *[256]bool {
	var set [256]bool
	for i := 0; i < len(ranges); i++ {
		if i+2 < len(ranges) && ranges[i+1] == '-' {
			for c := int(ranges[i]); c <= int(ranges[i+2]); c++ {
				set[c] = true
			}
			i += 2
			continue
		}
		set[ranges[i]] = true
	}
	return &set
}

func (r *Redactor) findShapes(s string, begin int, spans []span, open int) ([]span, int) {
	var past []int // by shape
	for i := begin; i+1 < len(s); i++ {
		pair := uint16(s[i]) | uint16(s[i+1])<<8
		if table.pairs[pair>>3]&(1<<(pair&7)) == 0 {
			continue
		}
		if past == nil {
			past = make([]int, len(shapes))
		}
		for _, n := range table.byFirst[s[i]] {
			if i < past[n] {
				continue
			}
			f := table.at(s, i, n)
			past[n] = max(f.past, f.to)
			if f.open {
				open = min(open, i)
			}
			if f.to > 0 && f.from >= begin {
				spans = append(spans, span{f.from, f.to, r.shapeBase + n})
			}
		}
	}
	return spans, open
}

// begun is where the end of s may be the first bytes of a shape, len(s) where it is not.
func (t *shapeTable) begun(s string, begin int) int {
	for i := max(begin, len(s)-t.longest); i < len(s); i++ {
		for _, n := range t.byFirst[s[i]] {
			for _, b := range shapes[n].begins {
				if strings.HasPrefix(b, s[i:]) {
					return i
				}
			}
		}
	}
	return len(s)
}

// at looks for one shape at one place.
func (t *shapeTable) at(s string, i, n int) found {
	sh := &shapes[n]
	for _, b := range sh.begins {
		if !strings.HasPrefix(s[i:], b) {
			continue
		}
		if sh.match != nil {
			return sh.match(s, i)
		}
		if !wordBegins(s, i) {
			return found{}
		}
		stretch := s
		if most := i + len(b) + sh.most; sh.most > 0 && most < len(s) {
			stretch = s[:most+1]
		}
		end := run(stretch, i+len(b), t.letters[n])
		got := end - i - len(b)
		f := found{from: i, to: end, open: end == len(s) && got < maxShape}
		if sh.most == 0 {
			f.past = end
		}
		if got < sh.least || sh.most > 0 && (got > sh.most || end < len(s) && isWord(s[end])) {
			f.to = 0
		}
		return f
	}
	return found{}
}

// run is where the letters of a set that begin at i end.
func run(s string, i int, set *[256]bool) int {
	for i < len(s) && set[s[i]] {
		i++
	}
	return i
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// wordBegins says that no word goes over place i: what is before it is no letter, or the end of an escape such as \n or %3D.
func wordBegins(s string, i int) bool {
	if i == 0 || !isWord(s[i-1]) {
		return true
	}
	return i >= 2 && s[i-2] == '\\' || i >= 3 && s[i-3] == '%'
}

// openAI tells a key from a word with hyphens: it has a digit and a capital.
func openAI(s string, i int) found {
	if !wordBegins(s, i) {
		return found{}
	}
	end := run(s, i+len("sk-"), urlLetters)
	body := s[i+len("sk-") : end]
	f := found{from: i, to: end, past: end, open: end == len(s) && len(body) < maxShape}
	if len(body) < 20 || !strings.ContainsAny(body, "0123456789") || !strings.ContainsAny(body, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		f.to = 0
	}
	return f
}

var urlLetters = letterSet(urlish)

// jwt is a head and a body that are JSON objects, and a signature.
func jwt(s string, i int) found {
	if !wordBegins(s, i) {
		return found{}
	}
	f := found{}
	at := i
	for part, least := range []int{12, 8, 16} {
		end := run(s, at, urlLetters)
		if f.past == 0 {
			f.past = end
		}
		if end == len(s) && end-i < maxShape {
			f.open = true
		}
		if end-at < least || part < 2 && (end == len(s) || s[end] != '.') {
			return f
		}
		at = end + 1
	}
	f.from, f.to = i, at-1
	return f
}

// privateKey is a PEM block up to its end, or as far as it looks like one where its end was cut off. Line breaks may be escaped.
func privateKey(s string, i int) found {
	const begin, end, dashes = "-----BEGIN ", "-----END ", "-----"
	const label = 64 // bytes that the words of a head take at most
	head := s[i+len(begin) : min(len(s), i+len(begin)+label)]
	k := strings.Index(head, dashes)
	if k < 0 {
		return found{open: len(head) < label && !strings.ContainsAny(head, "\n\"'")}
	}
	if !strings.Contains(head[:k], "PRIVATE KEY") {
		return found{}
	}
	rest := i + len(begin) + k + len(dashes)
	body := s[rest:min(len(s), rest+maxBlock)]
	whole := len(body) == maxBlock
	if k := strings.Index(body, begin); k >= 0 {
		body, whole = body[:k], true
	}
	if k := strings.Index(body, end); k >= 0 && holdsKey(body[:k]) {
		to := rest + k + len(end)
		k := strings.Index(s[to:min(len(s), to+label)], dashes)
		if k < 0 {
			return found{from: i, to: to, open: len(s)-to < label}
		}
		return found{from: i, to: to + k + len(dashes)}
	}
	to := run(body, 0, pemLetters)
	f := found{from: i, to: rest + to, open: !whole && strings.HasPrefix(end, body[run(body, 0, pemBody):]) || to == len(body) && !whole}
	if !holdsKey(body[:to]) {
		f.to = 0
	}
	return f
}

// holdsKey tells what is encoded from words about it: words are shorter.
func holdsKey(body string) bool {
	const long = 20
	for i := 0; i < len(body); i++ {
		if end := run(body, i, baseLetters); end-i >= long {
			return true
		} else if end > i {
			i = end - 1
		}
	}
	return false
}

var (
	pemLetters  = letterSet(alnum + "+/=:,. \r\n\t\\" + numbered + "-")
	pemBody     = letterSet(alnum + "+/=:,. \r\n\t\\" + numbered)
	baseLetters = letterSet(alnum + "+/=")
)

// authorization is the credential of an Authorization header, in whatever quotes the header stands.
func authorization(s string, i int) found {
	j := run(s, i+len("authorization"), headerGap)
	gap := s[i:j]
	if !strings.ContainsAny(gap, ":=") && j < len(s) {
		return found{}
	}
	end := run(s, j, schemeLetters)
	scheme := s[j:end]
	known := false
	for _, k := range []string{"bearer", "basic", "token", "bot", "apikey", "digest"} {
		known = known || strings.EqualFold(scheme, k)
	}
	if end == len(s) {
		return found{open: end-i < 128}
	}
	if !known {
		return found{}
	}
	from := end
	for from < len(s) && s[from] == ' ' {
		from++
	}
	to := run(s, from, tokenLetters)
	f := found{from: from, to: to, open: to == len(s) && to-from < maxShape}
	if to-from < minValue || from == end {
		f.to = 0
	}
	return f
}

var (
	headerGap     = letterSet(`:= "'\` + "\t")
	schemeLetters = letterSet("A-Za-z")
	tokenLetters  = letterSet(alnum + "._~+/=-")
)

// userInfo is the password in scheme://user:password@host. What only stands for one, such as $PASSWORD or ***, is left.
func userInfo(s string, i int) found {
	if i == 0 || !isWord(s[i-1]) {
		return found{}
	}
	at := i + len("://")
	colon := -1
	for j := at; ; j++ {
		switch {
		case j == len(s):
			return found{open: j-at < maxUserInfo}
		case j-at >= maxUserInfo:
			return found{}
		case s[j] == ':' && colon < 0:
			colon = j
		case s[j] == '@':
			if colon < 0 || colon+1 == j || strings.IndexByte("$<{*", s[colon+1]) >= 0 || strings.Trim(s[colon+1:j], "xX.") == "" {
				return found{}
			}
			return found{from: colon + 1, to: j}
		case s[j] <= ' ' || strings.IndexByte("/?#\"'`<>\\()[]", s[j]) >= 0:
			return found{}
		}
	}
}

const maxUserInfo = 512
