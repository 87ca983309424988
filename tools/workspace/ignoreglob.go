package workspace

import "strings"

// globOp is one step of a compiled ignore pattern.
type globOp struct {
	kind opKind
	text string   // opText
	set  *byteSet // opSet
}

type opKind uint8

const (
	opText    opKind = iota
	opAny            // one byte, no slash
	opSet            // one byte of a set, no slash
	opStar           // any bytes but slash
	opFolders        // nothing, or anything that ends with a slash
	opAll            // anything
)

type byteSet [4]uint64

func (s *byteSet) add(b byte)      { s[b>>6] |= 1 << (b & 63) }
func (s *byteSet) has(b byte) bool { return s[b>>6]>>(b&63)&1 != 0 }

// plainLen returns how much of a pattern, from its start, is no wildcard and no escape.
func plainLen(p string) int {
	if i := strings.IndexAny(p, `*?[\`); i >= 0 {
		return i
	}
	return len(p)
}

// compileGlob compiles a pattern in git's dialect, where whole means that it is matched against a path, so that ** crosses folders. Bytes count,
// not characters. A pattern that can never match (an unended set, a backslash at the end) is not ok.
func compileGlob(p string, whole bool) (ops []globOp, ok bool) {
	addText := func(s string) {
		if n := len(ops); n > 0 && ops[n-1].kind == opText {
			ops[n-1].text += s
		} else {
			ops = append(ops, globOp{kind: opText, text: s})
		}
	}
	for i := 0; i < len(p); {
		switch p[i] {
		case '*':
			end := i + 1
			for end < len(p) && p[end] == '*' {
				end++
			}
			atStart := i == 0 || p[i-1] == '/'
			rest := p[end:]
			switch {
			case !whole || end-i == 1 || !atStart || rest != "" && rest[0] != '/' && !strings.HasPrefix(rest, `\/`):
				ops = append(ops, globOp{kind: opStar})
			case strings.HasPrefix(rest, "/"):
				ops = append(ops, globOp{kind: opFolders})
				end++
			default:
				ops = append(ops, globOp{kind: opAll})
			}
			i = end
		case '?':
			ops = append(ops, globOp{kind: opAny})
			i++
		case '[':
			set, n := parseSet(p[i:])
			if n == 0 {
				return nil, false
			}
			ops = append(ops, globOp{kind: opSet, set: set})
			i += n
		case '\\':
			if i+1 == len(p) {
				return nil, false
			}
			addText(p[i+1 : i+2])
			i += 2
		default:
			n := plainLen(p[i:])
			addText(p[i : i+n])
			i += n
		}
	}
	return ops, true
}

// parseSet parses a bracket expression at the start of p and returns its length, 0 when it is not ended or names an unknown class.
func parseSet(p string) (*byteSet, int) {
	i, negated := 1, false
	if i < len(p) && (p[i] == '!' || p[i] == '^') {
		i, negated = i+1, true
	}
	var s byteSet
	var prev byte // what a range may begin with
	for first := true; ; first = false {
		if i >= len(p) {
			return nil, 0
		}
		b := p[i]
		switch {
		case b == ']' && !first:
			if negated {
				for j := range s {
					s[j] = ^s[j]
				}
			}
			return &s, i + 1
		case b == '\\':
			if i++; i >= len(p) {
				return nil, 0
			}
			prev = p[i]
			s.add(prev)
		case b == '-' && prev != 0 && i+1 < len(p) && p[i+1] != ']':
			if i++; p[i] == '\\' {
				if i++; i >= len(p) {
					return nil, 0
				}
			}
			for c := int(prev); c <= int(p[i]); c++ {
				s.add(byte(c))
			}
			prev = 0
		case b == '[' && i+1 < len(p) && p[i+1] == ':':
			end := strings.IndexByte(p[i+2:], ']')
			if end < 0 {
				return nil, 0
			}
			class := p[i+2 : i+2+end]
			if !strings.HasSuffix(class, ":") {
				s.add('[') // no class after all
				prev = '['
				break
			}
			if !addClass(&s, strings.TrimSuffix(class, ":")) {
				return nil, 0
			}
			i += 2 + end
			prev = 0
		default:
			s.add(b)
			prev = b
		}
		i++
	}
}

// addClass adds a POSIX class of ASCII.
func addClass(s *byteSet, class string) bool {
	in, ok := map[string]func(b byte) bool{
		"alnum":  func(b byte) bool { return isAlpha(b) || isDigit(b) },
		"alpha":  isAlpha,
		"blank":  func(b byte) bool { return b == ' ' || b == '\t' },
		"cntrl":  func(b byte) bool { return b < ' ' || b == 0x7f },
		"digit":  isDigit,
		"graph":  func(b byte) bool { return b > ' ' && b < 0x7f },
		"lower":  func(b byte) bool { return b >= 'a' && b <= 'z' },
		"print":  func(b byte) bool { return b >= ' ' && b < 0x7f },
		"punct":  func(b byte) bool { return b > ' ' && b < 0x7f && !isAlpha(b) && !isDigit(b) },
		"space":  func(b byte) bool { return b == ' ' || b >= '\t' && b <= '\r' },
		"upper":  func(b byte) bool { return b >= 'A' && b <= 'Z' },
		"xdigit": func(b byte) bool { return isDigit(b) || b|0x20 >= 'a' && b|0x20 <= 'f' },
	}[class]
	if !ok {
		return false
	}
	for b := range byte(0x80) {
		if in(b) {
			s.add(b)
		}
	}
	return true
}

func isAlpha(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }
func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// matchGlob tells whether ops match the whole of text, in time of at most len(ops)·len(text)², whatever the pattern: a star need only be tried
// again within its element, and only after the last opFolders or opAll.
func matchGlob(ops []globOp, text string) bool {
	var (
		op, at             int
		starOp, starAt     = -1, 0
		crossOp, crossAt   = -1, 0
		crossFolders, next bool
	)
	for {
		next = false
		if op == len(ops) {
			if at == len(text) {
				return true
			}
		} else {
			o := &ops[op]
			switch o.kind {
			case opText:
				if next = strings.HasPrefix(text[at:], o.text); next {
					at += len(o.text)
				}
			case opAny, opSet:
				if next = at < len(text) && text[at] != '/' && (o.kind == opAny || o.set.has(text[at])); next {
					at++
				}
			case opStar:
				starOp, starAt, next = op+1, at, true
			default:
				if op+1 == len(ops) && o.kind == opAll {
					return true
				}
				crossOp, crossAt, crossFolders, starOp, next = op+1, at, o.kind == opFolders, -1, true
			}
		}
		switch {
		case next:
			op++
		case starOp >= 0 && starAt < len(text) && text[starAt] != '/':
			starAt++
			op, at = starOp, starAt
		case crossOp >= 0 && crossAt < len(text):
			crossAt++
			if crossFolders {
				slash := strings.IndexByte(text[crossAt-1:], '/')
				if slash < 0 {
					return false
				}
				crossAt += slash
			}
			op, at, starOp = crossOp, crossAt, -1
		default:
			return false
		}
	}
}
