package memory

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"unicode"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"muster/budget"
)

// Search finds the memories that a query is about among list, the best first and of equal ones the one that stands earlier in list; at most most
// of them, with the exact number of all. A query without words is answered with the beginning of list.
func Search(ctx context.Context, list []Memory, query string, most int) (hits []Memory, total int, err error) {
	terms := strings.Fields(query)
	if len(terms) == 0 {
		return list[:min(most, len(list))], len(list), nil
	}
	rows, err := ranked(ctx, list, match(terms))
	if err != nil {
		return nil, 0, fmt.Errorf("search memories: %w", err)
	}
	if len(rows) == 0 {
		rows = containing(list, terms)
	}
	for _, i := range rows[:min(most, len(rows))] {
		hits = append(hits, list[i])
	}
	return hits, len(rows), nil
}

// schema is the index: pairs holds what has no blanks between its words.
const schema = `CREATE VIRTUAL TABLE memory USING fts5(text, tags, pairs, tokenize = 'porter unicode61 remove_diacritics 2', content = '')`

// ranked lists the places in list of what an FTS5 expression matches, the best first.
func ranked(ctx context.Context, list []Memory, expression string) (places []int, err error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // each connection would have a database of its own
	if err := fill(ctx, db, list); err != nil {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, `SELECT rowid FROM memory WHERE memory MATCH ? ORDER BY bm25(memory), rowid`, expression)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var at int
		if err := rows.Scan(&at); err != nil {
			return nil, err
		}
		places = append(places, at)
	}
	return places, rows.Err()
}

func fill(ctx context.Context, db *sql.DB, list []Memory) error {
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	add, err := tx.PrepareContext(ctx, `INSERT INTO memory(rowid, text, tags, pairs) VALUES (?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	defer add.Close()
	for i, m := range list {
		tags := strings.Join(m.Tags, " ")
		if _, err := add.ExecContext(ctx, i, m.Text, tags, strings.Join(pairs(m.Text+" "+tags), " ")); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// match is the FTS5 expression of words: any of them, each quoted, so that nothing in it means anything.
func match(terms []string) string {
	var any []string
	for _, t := range terms {
		any = append(any, quoted(t))
		letters := pairs(t)
		for _, p := range letters {
			if len(letters) == 1 || budget.Chars(p) > 1 { // a letter by itself stands in half of all texts
				any = append(any, "pairs:"+quoted(p))
			}
		}
	}
	slices.Sort(any)
	return strings.Join(slices.Compact(any), " OR ")
}

func quoted(s string) string {
	s = strings.ReplaceAll(s, "\x00", " ") // it would end the expression
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

// pairs lists the overlapping pairs of letters in what a text holds of scripts that have no blanks between words, and each letter by itself, so that
// a query of a single one finds it.
func pairs(text string) []string {
	var out []string
	last := rune(0)
	for _, r := range text {
		if !unicode.IsLetter(r) || !unspaced(r) {
			if !unicode.IsMark(r) { // vowels of Thai and others stand on their letter
				last = 0
			}
			continue
		}
		out = append(out, string(r))
		if last != 0 {
			out = append(out, string([]rune{last, r}))
		}
		last = r
	}
	return out
}

func unspaced(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// containing lists the places of what holds one of the words letter by letter, whatever their case.
func containing(list []Memory, terms []string) (places []int) {
	for i, m := range list {
		text := strings.ToLower(m.Text + "\n" + strings.Join(m.Tags, "\n"))
		if slices.ContainsFunc(terms, func(t string) bool { return strings.Contains(text, strings.ToLower(t)) }) {
			places = append(places, i)
		}
	}
	return places
}
