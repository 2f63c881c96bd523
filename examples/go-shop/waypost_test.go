package shop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A running `waypost dev`, started once for all tests.
var controlURL string

func TestMain(m *testing.M) {
	os.Exit(runWithWaypost(m))
}

func runWithWaypost(m *testing.M) int {
	began := time.Now()
	folder, err := os.MkdirTemp("", "waypost-dev-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	program := os.Getenv("WAYPOST")
	if program == "" {
		program = "waypost"
	}
	envFile := filepath.Join(folder, "waypost-dev.env")
	server := exec.Command(program, "dev", "--memory", "--port", "0", "--simulator-port", "0",
		"--env-file", envFile, "--until-stdin-ends")
	server.Dir = folder
	server.Stderr = os.Stderr
	server.Env = append(os.Environ(), "WAYPOST_RATES=false", "WAYPOST_LOG_LEVEL=error")
	input, err := server.StdinPipe()
	if err != nil {
		panic(err)
	}
	if err := server.Start(); err != nil {
		panic(err)
	}
	defer server.Wait()
	defer input.Close()
	for deadline := time.Now().Add(time.Minute); controlURL == ""; time.Sleep(20 * time.Millisecond) {
		text, _ := os.ReadFile(envFile)
		for _, line := range strings.Split(string(text), "\n") {
			if value := strings.TrimPrefix(line, "CONTROL_URL="); value != line && bytes.HasSuffix(text, []byte("\n")) {
				controlURL = value
			}
		}
		if time.Now().After(deadline) {
			fmt.Fprintln(os.Stderr, "waypost dev is not ready within a minute")
			return 1
		}
	}
	fmt.Printf("waypost ready after %d ms\n", time.Since(began).Milliseconds())
	return m.Run()
}

// A Partner belongs to one test.
type Partner struct {
	t   *testing.T
	ID  string
	Env map[string]string
}

// NewPartner creates a partner that is deleted at the end of the test.
func NewPartner(t *testing.T) *Partner {
	t.Helper()
	partner := &Partner{t: t}
	control(t, "POST", "/partners", map[string]any{"name": t.Name()}, partner)
	t.Cleanup(func() { control(t, "DELETE", "/partners/"+partner.ID, nil, nil) })
	return partner
}

// Do sends a request about this partner. A failed wait ends the test with the server's explanation.
func (partner *Partner) Do(method, path string, body map[string]any, result any) {
	partner.t.Helper()
	control(partner.t, method, "/partners/"+partner.ID+path, body, result)
}

func control(t *testing.T, method, path string, body map[string]any, result any) {
	t.Helper()
	content, _ := json.Marshal(body)
	request, err := http.NewRequest(method, controlURL+path, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		var failure struct{ Error, Explanation string }
		json.NewDecoder(response.Body).Decode(&failure)
		if failure.Explanation != "" {
			t.Fatal(failure.Explanation)
		}
		t.Fatal(failure.Error)
	}
	if result != nil {
		if err := json.NewDecoder(response.Body).Decode(result); err != nil {
			t.Fatal(err)
		}
	}
}
