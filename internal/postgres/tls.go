package postgres

import (
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
)

// advised adds what an operator can do about a connection that could not be encrypted as the URL wants it. Others stay as they are.
func advised(err error) error {
	var (
		hostname x509.HostnameError
		invalid  x509.CertificateInvalidError
		unknown  x509.UnknownAuthorityError
		advice   string
	)
	switch {
	case errors.As(err, &hostname):
		advice = "the server's certificate is for another name: connect by one that is in it"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		advice = "the server's certificate is out of date: renew it, or set the clock"
	case errors.As(err, &unknown):
		advice = "the server's certificate is signed by nobody known here: set database.ca_file, or sslrootcert in the URL, to the certificate of who signed it"
	case strings.Contains(err.Error(), "server refused TLS connection"): // the driver has no type for it
		advice = "the server speaks no TLS: set ssl = on in postgresql.conf; or, where nobody can listen, sslmode=disable in the URL and no database.ca_file"
	default:
		return err
	}
	return fmt.Errorf("%w: %s", err, advice)
}
