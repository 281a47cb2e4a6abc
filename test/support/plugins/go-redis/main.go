// A kind of Mayfly in Go, on HashiCorp's go-plugin: users of a Redis server.
package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	v1 "mayfly/plugin/v1"
)

var handshake = plugin.HandshakeConfig{
	ProtocolVersion:  1,
	MagicCookieKey:   "MAYFLY_PLUGIN",
	MagicCookieValue: "mayfly.plugin.v1",
}

const schema = `{
  "type": "object", "additionalProperties": false, "required": ["address", "username", "password"],
  "properties": {
    "address": {"type": "string", "x-upstream": true, "description": "Host and port."},
    "username": {"type": "string", "description": "May change users."},
    "password": {"type": "string", "x-secret": true, "description": "Of that user."}
  }
}`

type settings struct {
	Address  string `json:"address"`
	Username string `json:"username"`
	Password string `json:"password"`
}

type kind struct {
	v1.UnimplementedKindServer
	settings settings
}

func (k *kind) Describe(context.Context, *v1.DescribeRequest) (*v1.Description, error) {
	return &v1.Description{
		Type: "go-redis", Title: "Redis, by a plugin in Go", Version: "1.0.0",
		ConfigSchemaJson: schema, Revokes: true, Recovers: true, Lists: true,
		Scopes:      []*v1.ScopeForm{{Form: "read:<prefix>", Gives: "read the keys that begin with a prefix"}},
		ScopesHelp:  "read: and the beginning of the keys.",
		Environment: map[string]string{"REDISCLI_AUTH": "{password}"},
	}, nil
}

func (k *kind) Open(_ context.Context, in *v1.OpenRequest) (*v1.OpenResponse, error) {
	if err := json.Unmarshal([]byte(in.ConfigJson), &k.settings); err != nil {
		return nil, status.Error(codes.FailedPrecondition, "The configuration is no JSON.")
	}
	return &v1.OpenResponse{}, nil
}

func (k *kind) Check(ctx context.Context, _ *v1.CheckRequest) (*v1.CheckResponse, error) {
	_, err := k.call(ctx, "ACL", "WHOAMI")
	return &v1.CheckResponse{}, err
}

func (k *kind) Issue(ctx context.Context, in *v1.IssueRequest) (*v1.IssueResponse, error) {
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return nil, status.Error(codes.FailedPrecondition, "There is no randomness.")
	}
	password := base64.RawURLEncoding.EncodeToString(secret)
	name := nameOf(in.CredentialId)
	rule := []string{"ACL", "SETUSER", name, "reset", "on", fmt.Sprintf("#%x", sha256.Sum256([]byte(password))), "+@read", "+ping"}
	for _, scope := range in.Scopes {
		rule = append(rule, "%R~"+strings.TrimPrefix(scope, "read:")+"*")
	}
	if _, err := k.call(ctx, rule...); err != nil {
		return nil, err
	}
	fields, _ := json.Marshal(map[string]string{"username": name, "password": password})
	handle, _ := json.Marshal(map[string]string{"username": name})
	return &v1.IssueResponse{FieldsJson: string(fields), HandleJson: string(handle), FactsJson: string(handle)}, nil
}

func (k *kind) Revoke(ctx context.Context, in *v1.RevokeRequest) (*v1.RevokeResponse, error) {
	_, err := k.call(ctx, "ACL", "DELUSER", nameOf(in.CredentialId))
	return &v1.RevokeResponse{}, err
}

func (k *kind) List(ctx context.Context, _ *v1.ListRequest) (*v1.ListResponse, error) {
	names, err := k.call(ctx, "ACL", "USERS")
	out := &v1.ListResponse{}
	for _, name := range names {
		if id := strings.TrimPrefix(name, "go_"); id != name {
			handle, _ := json.Marshal(map[string]string{"username": name})
			out.Items = append(out.Items, &v1.Listed{CredentialId: "cred_" + id, HandleJson: string(handle)})
		}
	}
	return out, err
}

func nameOf(credentialID string) string { return "go_" + strings.TrimPrefix(credentialID, "cred_") }

// call sends one command on a connection of its own, after the password, and returns the reply's strings.
func (k *kind) call(ctx context.Context, command ...string) ([]string, error) {
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", k.settings.Address)
	if err != nil {
		return nil, status.Error(codes.Unavailable, "Redis cannot be reached.")
	}
	defer connection.Close()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-ctx.Done():
			connection.Close()
		case <-stop:
		}
	}()
	reader := bufio.NewReader(connection)
	if _, err := send(connection, reader, "AUTH", k.settings.Username, k.settings.Password); err != nil {
		return nil, err
	}
	return send(connection, reader, command...)
}

func send(connection io.Writer, reader *bufio.Reader, words ...string) ([]string, error) {
	text := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := io.WriteString(connection, text); err != nil {
		return nil, status.Error(codes.Unavailable, "Redis cannot be reached.")
	}
	return read(reader)
}

// read understands the replies of RESP2 that the commands above have.
func read(reader *bufio.Reader) ([]string, error) {
	line, err := reader.ReadString('\n')
	if err != nil || len(line) < 3 {
		return nil, status.Error(codes.Unavailable, "Redis closed the connection.")
	}
	rest := strings.TrimRight(line[1:], "\r\n")
	switch line[0] {
	case '-':
		return nil, status.Error(codes.PermissionDenied, "Redis refuses the command.")
	case '+', ':':
		return []string{rest}, nil
	case '$':
		size, _ := strconv.Atoi(rest)
		if size < 0 {
			return nil, nil
		}
		body := make([]byte, size+2)
		_, err := io.ReadFull(reader, body)
		return []string{string(body[:size])}, err
	}
	count, _ := strconv.Atoi(rest)
	var all []string
	for i := 0; i < count; i++ {
		one, err := read(reader)
		if err != nil {
			return nil, err
		}
		all = append(all, one...)
	}
	return all, nil
}

type served struct{ plugin.NetRPCUnsupportedPlugin }

func (served) GRPCServer(_ *plugin.GRPCBroker, server *grpc.Server) error {
	v1.RegisterKindServer(server, &kind{})
	return nil
}

func (served) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (interface{}, error) {
	return nil, fmt.Errorf("this is a plugin, not its host")
}

func main() {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: handshake,
		Plugins:         map[string]plugin.Plugin{"kind": served{}},
		GRPCServer:      plugin.DefaultGRPCServer,
	})
}
