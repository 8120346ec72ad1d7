package fdbtool

import (
	"encoding/json"
	"strings"
)

// secretsOf returns what must not appear in any text of a tool: every text in the credentials file except the names of accounts.
func secretsOf(access Access) []string {
	var secrets []string
	add := func(text string) {
		if text != "" {
			secrets = append(secrets, text)
		}
	}
	var file struct {
		Accounts map[string]any `json:"accounts"`
	}
	if json.Unmarshal(access.Credentials, &file) == nil { // the tools read nothing else
		for key, account := range file.Accounts {
			name, _, _ := strings.Cut(key, "@")
			_, misplaced, _ := strings.Cut(name, ":") // a name that includes its secret, as in a URL
			add(misplaced)
			eachText(account, add)
		}
	}
	add(access.TLS.Password)
	return secrets
}

func eachText(value any, add func(string)) {
	switch value := value.(type) {
	case string:
		add(value)
	case []any:
		for _, element := range value {
			eachText(element, add)
		}
	case map[string]any:
		for _, element := range value {
			eachText(element, add)
		}
	}
}
