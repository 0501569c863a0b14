// Connects as cells say, one JSON line each on stdin, and prints an outcome a line: `ok`, or the error.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

type cell struct {
	Address, Protocol, Mechanism, User, Password, Authority, Certificate string
	DurationMs                                                           int   `json:"duration_ms"`
	TokenS                                                               int64 `json:"token_s"`
}

const timeout = 6 * time.Second

// token returns an access token that nobody has signed.
func token(c cell) string {
	now := time.Now().Unix()
	claims := fmt.Sprintf(`{"sub":"%s","iat":%d,"exp":%d}`, c.User, min(now, now+c.TokenS-1), now+c.TokenS)
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(claims)) + "."
}

func mechanism(c cell) sasl.Mechanism {
	switch c.Mechanism {
	case "PLAIN":
		return plain.Auth{User: c.User, Pass: c.Password}.AsMechanism()
	case "SCRAM-SHA-256":
		return scram.Auth{User: c.User, Pass: c.Password}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: c.User, Pass: c.Password}.AsSha512Mechanism()
	case "OAUTHBEARER":
		return oauth.Oauth(func(context.Context) (oauth.Auth, error) {
			return oauth.Auth{Token: token(c)}, nil
		})
	}
	return nil
}

func settings(c cell) ([]kgo.Opt, error) {
	found := []kgo.Opt{kgo.SeedBrokers(c.Address), kgo.RetryTimeout(timeout), kgo.RequestRetries(1)}
	if m := mechanism(c); m != nil {
		found = append(found, kgo.SASL(m))
	}
	if c.Protocol != "SSL" && c.Protocol != "SASL_SSL" {
		return found, nil
	}
	pem, err := os.ReadFile(c.Authority)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	config := &tls.Config{RootCAs: pool, ServerName: "localhost"}
	if c.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(c.Certificate, c.Certificate)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return append(found, kgo.DialTLSConfig(config)), nil
}

func outcome(c cell) string {
	found, err := settings(c)
	if err != nil {
		return "settings: " + err.Error()
	}
	client, err := kgo.NewClient(found...)
	if err != nil {
		return "client: " + err.Error()
	}
	defer client.Close()
	until := time.Time{}
	for {
		limited, cancel := context.WithTimeout(context.Background(), timeout)
		_, err := kmsg.NewPtrMetadataRequest().RequestWith(limited, client)
		cancel()
		if err != nil {
			for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
				err = inner
			}
			return fmt.Sprintf("%T: %v", err, err)
		}
		if until.IsZero() {
			until = time.Now().Add(time.Duration(c.DurationMs) * time.Millisecond)
		}
		if !time.Now().Before(until) {
			return "ok"
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func main() {
	var cells []cell
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var c cell
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			panic(err)
		}
		cells = append(cells, c)
	}
	outcomes := make([]string, len(cells))
	var all sync.WaitGroup
	for i := range cells {
		all.Add(1)
		go func() {
			defer all.Done()
			outcomes[i] = outcome(cells[i])
		}()
	}
	all.Wait()
	for _, each := range outcomes {
		line, _ := json.Marshal(each)
		fmt.Println(string(line))
	}
}
