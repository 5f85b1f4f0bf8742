package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// minPepper is as long as the HMAC-SHA-256 key that it is: a shorter one could be guessed by who holds a dump of the database.
const minPepper = 32

func (l *loader) checkDatabase() {
	d := &l.cfg.Database
	l.atLeast("database.max_conns", int64(d.MaxConns), 1)
	for path, text := range map[string]string{"database.url": d.URL, "database.listen_url": d.ListenURL} {
		if text != "" {
			l.checkDatabaseURL(path, text)
		}
	}
	if d.URL != "" {
		return
	}
	for path, value := range map[string]string{
		"database.listen_url": d.ListenURL, "database.ca_file": d.CAFile, "control.snapshot_file": l.cfg.Control.SnapshotFile,
	} {
		if value != "" {
			l.wrong(path, "is used with a database only", "set database.url, or leave this out")
		}
	}
}

// checkDatabaseURL reads only what can be told without the driver. What it reports holds nothing of the URL, which has a password in it.
func (l *loader) checkDatabaseURL(path, text string) {
	const want = "want postgres://user:password@host:5432/database" //nolint:gosec // a pattern
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		l.wrong(path, "is not the URL of a PostgreSQL", want)
		return
	}
	hosts := strings.Split(u.Host, ",")
	if _, secret := u.User.Password(); !secret || allNear(hosts) || l.cfg.Database.CAFile != "" {
		return
	}
	if mode := u.Query().Get("sslmode"); mode != "require" && mode != "verify-ca" && mode != "verify-full" {
		l.warn("%s: the password may be sent in plain text; add sslmode=verify-full, or set database.ca_file", path)
	}
}

// allNear tells that hosts, with or without ports, are on this machine.
func allNear(hosts []string) bool {
	return !slices.ContainsFunc(hosts, func(host string) bool {
		u := url.URL{Host: host}
		return u.Hostname() != "" && !loopback(u.Hostname())
	})
}

func (l *loader) checkControl() {
	c := &l.cfg.Control
	if n := len(c.Pepper.Reveal()); n > 0 && n < minPepper {
		l.wrong("control.pepper", fmt.Sprintf("has %d characters", n), fmt.Sprintf("want %d or more; make one with: openssl rand -hex 32", minPepper))
	}
	o := &c.OIDC
	if o.Issuer == "" {
		if o.ClientID != "" || o.ClientSecret != "" || o.RedirectURL != "" {
			l.wrong("control.oidc.issuer", "is missing", "want the provider's URL, such as \"https://login.example.com\"")
		}
		return
	}
	for path, text := range map[string]string{"control.oidc.issuer": o.Issuer, "control.oidc.redirect_url": o.RedirectURL} {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
			l.wrong(path, "is not an https URL", "want one such as \"https://login.example.com\"; http is for this machine only")
		}
	}
	if o.ClientID == "" {
		l.wrong("control.oidc.client_id", "is missing", "want the name under which the provider knows us")
	}
	if o.GrantsClaim == "" {
		l.wrong("control.oidc.grants_claim", "is empty", "want the name of the claim with the operator's grants, such as \"sluice_grants\"")
	}
	if l.cfg.Database.URL == "" {
		l.wrong("control.oidc.issuer", "is used with a database only", "set database.url, or leave control.oidc out")
	}
}
