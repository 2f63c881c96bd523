package shop

import (
	"net/http/httptest"
	"testing"
)

const waitMS = 30_000

// openShop returns a shop that receives its callbacks, and the phone of a customer who has written to it.
func openShop(t *testing.T) (*Shop, *Partner, string) {
	t.Helper()
	partner := NewPartner(t)
	shop := &Shop{Env: partner.Env}
	server := httptest.NewServer(shop)
	t.Cleanup(server.Close)
	partner.Do("PUT", "/callbacks", map[string]any{"forward_to": server.URL + "/callbacks"}, nil)
	var ann struct{ Phone string }
	partner.Do("POST", "/phones", map[string]any{"name": "Ann"}, &ann)
	writeFrom(t, partner, ann.Phone, "Hi")
	return shop, partner, ann.Phone
}

func writeFrom(t *testing.T, partner *Partner, phone, text string) {
	t.Helper()
	body := map[string]any{"to": partner.Env["SOURCE"], "text": text}
	control(t, "POST", "/phones/"+phone+"/messages", body, nil)
	partner.Do("POST", "/wait-for-callback", map[string]any{"kind": "text", "text": text, "timeout_ms": waitMS}, nil)
}

func waitForMessage(partner *Partner, text string) {
	partner.t.Helper()
	partner.Do("POST", "/wait-for-message", map[string]any{"phone": "Ann", "text": text, "timeout_ms": waitMS}, nil)
}

func TestOrderIsConfirmedByAMessage(t *testing.T) {
	shop, partner, ann := openShop(t)

	if _, err := shop.PlaceOrder(ann, "green tea"); err != nil {
		t.Fatal(err)
	}

	waitForMessage(partner, "Thank you for your order 1: green tea.")
	partner.Do("POST", "/wait-for-callback", map[string]any{"kind": "delivered", "timeout_ms": waitMS}, nil)
	partner.Do("POST", "/no-callback-within", map[string]any{"kind": "failed", "ms": 0}, nil)
}

func TestCustomerCancelsTheOrder(t *testing.T) {
	shop, partner, ann := openShop(t)
	order, err := shop.PlaceOrder(ann, "green tea")
	if err != nil {
		t.Fatal(err)
	}

	writeFrom(t, partner, ann, "cancel")

	waitForMessage(partner, "Your order 1 is cancelled.")
	if state := shop.State(order.ID); state != "cancelled" {
		t.Fatalf("the order is %s", state)
	}
}
