package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
)

// resolve completes a client by the context that is meant: the one named by --context, by SLUICE_CONTEXT, or the current one. An address
// from elsewhere is asked without anything of a context: its token is not for that node.
func (c *client) resolve() error {
	if c.resolved {
		return nil
	}
	c.resolved = true
	flag, variable := "server", "SLUICE_SERVER"
	if c.admin {
		flag, variable = "admin", "SLUICE_ADMIN"
	}
	switch {
	case c.flags.Changed(flag) && c.flags.Changed("context"):
		return usageError{fmt.Errorf("--%s and --context both name a node: leave one out", flag)}
	case c.flags.Changed(flag):
		return nil
	case os.Getenv(variable) != "" && !c.flags.Changed("context"):
		return nil
	}
	path, err := contextsPath()
	if err != nil {
		if cmp.Or(c.context, os.Getenv("SLUICE_CONTEXT")) == "" {
			return nil // there are none, and none is named
		}
		return err
	}
	known, err := readContexts(path)
	if err != nil {
		return err
	}
	name := cmp.Or(c.context, os.Getenv("SLUICE_CONTEXT"), known.Current)
	if name == "" {
		return nil
	}
	found, err := known.find(name)
	if err != nil {
		return usageError{err}
	}
	return c.take(name, flag, found)
}

// take goes by a context. Certificates named by flags stay.
func (c *client) take(name, flag string, k cluster) error {
	c.url, c.tokenFile, c.namespace = k.Server, "", k.Namespace
	if c.admin {
		c.url, c.tokenFile = k.Admin, k.TokenFile
	}
	if c.url == "" {
		return errors.New("the context " + name + " has no address for this: sluice context set " + name + " --" + flag + " URL")
	}
	c.caFile = cmp.Or(c.caFile, k.CAFile)
	if c.certFile == "" && c.keyFile == "" {
		c.certFile, c.keyFile = k.CertFile, k.KeyFile
	}
	return nil
}
