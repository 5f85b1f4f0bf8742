// Package testproxy starts the real nginx and the real Caddy on free loopback ports, for tests and for benchmark programs:
// ready when the call returns, gone when the test ends, however it ends.
//
// Linux only: it leans on PR_SET_PDEATHSIG.
package testproxy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// TB is what this package needs of a testing.TB. Every testing.TB is one.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
	TempDir() string
}

// Nginx starts nginx. conf writes what stands within http { }, for an address to listen on and a directory for logs.
func Nginx(tb TB, conf func(listen, dir string) string) *Proxy {
	tb.Helper()
	return launch(tb, "nginx", func(listen, dir string) *exec.Cmd {
		user := ""
		if os.Getuid() == 0 {
			user = "user root;\n" // else it could not write below dir
		}
		text := fmt.Sprintf(`%sdaemon off; master_process off; pid %[2]s/pid;
events { worker_connections 2048; }
http {
access_log off;
client_body_temp_path %[2]s/body; proxy_temp_path %[2]s/proxy; fastcgi_temp_path %[2]s/fastcgi; uwsgi_temp_path %[2]s/uwsgi; scgi_temp_path %[2]s/scgi;
%[3]s
}
`, user, dir, conf(listen, dir))
		// What it says before the configuration is read and after goes to standard error, and so to the log.
		return exec.Command("nginx", "-p", dir, "-c", write(tb, dir, "nginx.conf", text), "-e", "stderr", "-g", "error_log stderr warn;")
	})
}

// Caddy starts Caddy. conf writes the sites of a Caddyfile, for an address to listen on.
func Caddy(tb TB, conf func(listen string) string) *Proxy {
	tb.Helper()
	return launch(tb, "caddy", func(listen, dir string) *exec.Cmd {
		file := write(tb, dir, "Caddyfile", "{\n\tadmin off\n\tauto_https off\n}\n"+conf(listen))
		cmd := exec.Command("caddy", "run", "--config", file, "--adapter", "caddyfile")
		cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir, "HOME="+dir)
		return cmd
	})
}

// Recipe reads a file of deploy/, the folder given as root, and puts addresses in the place of those that it is written with.
func Recipe(tb TB, root, file, listen, sluice, app string) string {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		tb.Fatalf("testproxy: %v", err)
	}
	recipe := string(text)
	for _, r := range [][2]string{{"127.0.0.1:8000", listen}, {"127.0.0.1:8080", sluice}, {"127.0.0.1:3000", app}} {
		if !strings.Contains(recipe, r[0]) {
			tb.Fatalf("testproxy: %s does not contain %s", file, r[0])
		}
		recipe = strings.ReplaceAll(recipe, r[0], r[1])
	}
	return recipe
}

func write(tb TB, dir, name, text string) string {
	tb.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		tb.Fatalf("testproxy: %v", err)
	}
	return file
}
