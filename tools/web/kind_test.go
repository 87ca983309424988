package web

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
)

// files are bodies with the header that they are served with.
func newFiles(t *testing.T, files map[string][2]string) *site {
	return newSite(t, func(w http.ResponseWriter, r *http.Request) {
		f, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header()["Content-Type"] = nil // nothing is guessed for it
		if f[0] != "" {
			w.Header().Set("Content-Type", f[0])
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(f[1])))
		_, _ = w.Write([]byte(f[1]))
	})
}

// What is no text is named by what it is, whatever its header says, and hardly any of it is read.
func TestBinaryIsNamed(t *testing.T) {
	t.Parallel()
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	fmt.Fprint(z, "text inside")
	z.Close()
	pdf := "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n" + strings.Repeat("1 0 obj\n", 100_000)
	png := "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + strings.Repeat("\x00", 100)
	files := map[string][2]string{
		"/pdf": {"application/pdf", pdf}, "/pdf-as-html": {"text/html; charset=utf-8", pdf}, "/pdf-bare": {"", pdf}, "/png": {"image/png", png}, "/png-as-text": {"text/plain", png},
		"/zip": {"application/zip", "PK\x03\x04\x14\x00" + strings.Repeat("\x01", 50)}, "/gz": {"text/html", zipped.String()}, "/exe": {"", "MZ\x90\x00\x03" + strings.Repeat("\x00", 50)},
		"/7z": {"application/x-7z-compressed", "7z\xbc\xaf\x27\x1c\x00\x04"}, "/octets": {"application/octet-stream", "\x00\x01\x02"}, "/odd": {"a/b\u00e4", "\x00\x01\x02"},
		"/late": {"text/plain", strings.Repeat("a", 2_000) + "\x00" + strings.Repeat("a", 2_000)}, "/mp4": {"video/mp4", "\x00\x00\x00\x18ftypmp42" + strings.Repeat("\x00", 40)}, "/font": {"", "wOF2\x00\x01\x00\x00"},
	}
	s := newFiles(t, files)
	for path, want := range map[string]string{
		"/pdf": "it is no text but application/pdf, 800015 bytes by its header", "/pdf-as-html": "application/pdf", "/pdf-bare": "application/pdf", "/png": "image/png, 116 bytes", "/png-as-text": "image/png",
		"/zip": "application/zip, 56 bytes", "/gz": "application/x-gzip", "/exe": "application/octet-stream, 55 bytes", "/7z": "application/x-7z-compressed, 8 bytes", "/octets": "application/octet-stream, 3 bytes",
		"/odd": "no text but ", "/late": "application/octet-stream, which the server calls text/plain, 4001 bytes", "/mp4": "video/mp4", "/font": "font/woff2",
	} {
		s.fails(s.at(path), Lost, want)
	}
}

// Text comes as it is, whatever it is called.
func TestTextAsItIs(t *testing.T) {
	t.Parallel()
	files := map[string][2]string{
		"/json": {"application/json", `{"a": [1, 2], "b": "<p>"}`}, "/ld": {"application/ld+json; charset=utf-8", `{}`}, "/rss": {"application/rss+xml", "<?xml version=\"1.0\"?>\n<rss><a>x &amp; y</a></rss>"},
		"/svg": {"image/svg+xml", "<svg><text>x</text></svg>"}, "/md": {"text/markdown", "# Title\n\n*x* &amp;"}, "/plain.md": {"text/plain", "# Title"}, "/octets.txt": {"application/octet-stream", "only text"},
		"/js": {"application/javascript", "a < b && c"}, "/none": {"", "no header"}, "/pdf.txt": {"application/pdf", "this is no PDF"}, "/html-as-text": {"text/plain", "<p>x</p>"}, "/tabs": {"text/plain", "a\tb\r\nc\rd\n\n"},
		"/html": {"text/html", "<p>x</p>"}, "/html-bare": {"", "<!DOCTYPE html><p>x</p>"}, "/xhtml": {"application/xhtml+xml", "<?xml version=\"1.0\"?><html><body><p>x</p></body></html>"}, "/empty": {"text/html", ""}, "/bad": {"???", "text"},
	}
	s := newFiles(t, files)
	for path, want := range map[string][3]string{
		"/json": {"application/json", "the JSON as it is", files["/json"][1]}, "/ld": {"application/ld+json", "the JSON as it is", "{}"}, "/rss": {"application/rss+xml", "the XML as it is", files["/rss"][1]},
		"/svg": {"image/svg+xml", "the XML as it is", files["/svg"][1]}, "/md": {"text/markdown", "the Markdown as it is", files["/md"][1]}, "/plain.md": {"text/plain", "the Markdown as it is", "# Title"},
		"/octets.txt": {"text/plain", "the text as it is", "only text"}, "/js": {"application/javascript", "the text as it is", "a < b && c"}, "/none": {"text/plain", "the text as it is", "no header"},
		"/pdf.txt": {"text/plain", "the text as it is", "this is no PDF"}, "/html-as-text": {"text/plain", "the text as it is", "<p>x</p>"}, "/tabs": {"text/plain", "the text as it is", "a\tb\nc\nd\n\n"},
		"/html": {"text/html", "the whole page as Markdown", "x"}, "/html-bare": {"text/html", "the whole page as Markdown", "x"}, "/xhtml": {"application/xhtml+xml", "the whole page as Markdown", "x"},
		"/empty": {"text/html", "the whole page as Markdown", ""}, "/bad": {"text/plain", "the text as it is", "text"},
	} {
		if p := s.get(path); p.Type != want[0] || p.Form != want[1] || p.Text != want[2] || len(p.Notes) > 0 {
			t.Errorf("%s: %+v", path, p)
		}
	}
}

const russian = "Съешь же ещё этих мягких французских булок, да выпей чаю. Широкая электрификация южных губерний даст мощный толчок подъёму сельского хозяйства. "

// The charset is the header's, that of a byte order mark, the page's own, or what it looks like.
func TestCharsets(t *testing.T) {
	t.Parallel()
	coded := func(text string, encode func(string) (string, error)) string {
		s, err := encode(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	latin, sjis, gbk, cyrillic, koi, euc := charmap.ISO8859_1.NewEncoder().String, japanese.ShiftJIS.NewEncoder().String, simplifiedchinese.GBK.NewEncoder().String,
		charmap.Windows1251.NewEncoder().String, charmap.KOI8R.NewEncoder().String, korean.EUCKR.NewEncoder().String
	big := unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM).NewEncoder().String
	little := unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewEncoder().String
	chinese := strings.Repeat("中文网页的正文内容，用于检测字符集。", 10)
	japanese := strings.Repeat("日本語の本文です。文字コードを調べます。", 10)
	late := strings.Repeat("plain ", 500)
	files := map[string][2]string{
		"/header": {"text/html; charset=ISO-8859-1", coded("<p>café straße", latin)}, "/header-quoted": {`text/plain; charset="Shift_JIS"`, coded(japanese, sjis)},
		"/meta": {"text/html", `<meta charset="gbk"><p>` + coded("中文", gbk)}, "/http-equiv": {"text/html", `<meta http-equiv="Content-Type" content="text/html; charset=windows-1251"><p>` + coded("Привет", cyrillic)},
		"/header-over-meta": {"text/html; charset=windows-1251", `<meta charset="utf-8"><p>` + coded("Привет", cyrillic)}, "/xml": {"application/xml", `<?xml version="1.0" encoding="koi8-r"?><a>` + coded("Привет", koi) + "</a>"},
		"/bom": {"text/plain; charset=iso-8859-1", "\xef\xbb\xbfcafé"}, "/bom16": {"", "\xff\xfe" + coded("wide 中", little)}, "/bom16be": {"text/html", "\xfe\xff" + coded("<p>wide 中", big)}, "/header16": {"text/plain; charset=utf-16le", coded("wide 中", little)},
		"/utf8": {"text/plain", "naïve 中文"}, "/utf8-late": {"text/html", late + "naïve"}, "/utf8-stray": {"text/plain", strings.Repeat("中文", 60) + "\xff"}, "/lies": {"text/plain; charset=utf-8", coded(strings.Repeat(russian, 3), cyrillic)},
		"/guess-1251": {"text/plain", coded(russian, cyrillic)}, "/guess-koi8": {"text/html", "<p>" + coded(russian, koi)}, "/guess-gbk": {"text/html", "<p>" + coded(chinese, gbk)}, "/guess-sjis": {"text/html", "<p>" + coded(japanese, sjis)},
		"/guess-euc": {"text/plain", coded(strings.Repeat("한국어 문서의 본문입니다. ", 10), euc)}, "/guess-latin": {"text/plain", coded("Ein schöner Tag für alle, die früh aufstehen und die Straße überqueren", latin)},
		"/unknown": {"text/plain; charset=x-nobody", "plain ÿ"}, "/meta-lies": {"text/html", "<meta charset=utf-16><p>really utf-8: é"},
	}
	s := newFiles(t, files)
	for path, want := range map[string]string{
		"/header": "café straße", "/header-quoted": japanese, "/meta": "中文", "/http-equiv": "Привет", "/header-over-meta": "Привет", "/xml": `<?xml version="1.0" encoding="koi8-r"?><a>Привет</a>`,
		"/bom": "café", "/bom16": "wide 中", "/bom16be": "wide 中", "/header16": "wide 中", "/utf8": "naïve 中文", "/utf8-late": late + "naïve", "/utf8-stray": strings.Repeat("中文", 60) + "\ufffd", "/lies": strings.Repeat(russian, 3),
		"/guess-1251": russian, "/guess-koi8": strings.TrimSpace(russian), "/guess-gbk": chinese, "/guess-sjis": japanese, "/guess-euc": strings.Repeat("한국어 문서의 본문입니다. ", 10),
		"/guess-latin": "Ein schöner Tag für alle, die früh aufstehen und die Straße überqueren", "/unknown": "plain ÿ", "/meta-lies": "really utf-8: é",
	} {
		p := s.get(path)
		if p.Text != want {
			t.Errorf("%s: %.100q, want %.100q", path, p.Text, want)
		}
		if guess := strings.Contains(notes(p), "is a guess"); guess != (strings.HasPrefix(path, "/guess") || path == "/lies") {
			t.Errorf("%s: %q", path, p.Notes)
		}
		if bad := strings.Contains(notes(p), "1 bytes that are not utf-8"); bad != (path == "/utf8-stray") {
			t.Errorf("%s: %q", path, p.Notes)
		}
	}
}
