package secrets

import (
	"net/url"
	"slices"
	"strings"
)

// FromEnvironment makes a Redactor of what an environment ("NAME=value") holds: the variables that are named, and those that look like
// credentials. A named one that is not set is passed over; one that is too short to be looked for is an error, unless it was not named.
func FromEnvironment(environ []string, names []string) (*Redactor, error) {
	values := Credentials(environ)
	for _, kv := range environ {
		name, v, _ := strings.Cut(kv, "=")
		if v != "" && slices.Contains(names, name) {
			values[name] = v
		}
	}
	return New(values)
}

// Credentials are the values of those variables of an environment that look like secrets, by name: what IsCredential says of their names, and
// the passwords in addresses. What is too short to be looked for is left out.
func Credentials(environ []string) map[string]string {
	values := map[string]string{}
	for _, kv := range environ {
		name, v, _ := strings.Cut(kv, "=")
		if !IsCredential(name) {
			v = password(v)
		}
		if v = strings.Trim(v, "\r\n"); check(name, v) == nil {
			values[name] = v
		}
	}
	return values
}

// IsCredential says whether an environment variable of this name holds a secret, as far as a name can tell.
func IsCredential(name string) bool {
	name = strings.ToUpper(name)
	if name == "GOOGLE_APPLICATION_CREDENTIALS" {
		return false // the path of a file
	}
	for _, end := range []string{
		"API_KEY", "APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIALS", "SECRET_KEY", "ACCESS_KEY", "PRIVATE_KEY", "AUTH_KEY", "NKEY_SEED",
	} {
		if before, ok := strings.CutSuffix(name, end); ok && (before == "" || strings.HasSuffix(before, "_")) {
			return true
		}
	}
	return false
}

// password is the secret part of an address, or of a list of them: the password, or a user without one, which is a token.
func password(address string) string {
	for one := range strings.SplitSeq(address, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil || u.User == nil || u.Host == "" {
			continue
		}
		if p, ok := u.User.Password(); ok {
			return p
		}
		return u.User.Username()
	}
	return ""
}
