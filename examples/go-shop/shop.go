// Package shop confirms each order with a text, and cancels it when the customer writes "cancel".
package shop

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// Order is one order of a customer. State is placed or cancelled.
type Order struct {
	ID    int
	Phone string
	Goods string
	State string
}

// Shop places orders and handles callbacks. Env has the variables of waypost-dev.env.
type Shop struct {
	Env       map[string]string
	mutex     sync.Mutex
	orders    []*Order
	processed map[string]bool
}

// PlaceOrder stores an order of a customer who wrote in the last 24 hours, and confirms it.
func (shop *Shop) PlaceOrder(phone, goods string) (Order, error) {
	shop.mutex.Lock()
	defer shop.mutex.Unlock()
	order := &Order{len(shop.orders) + 1, phone, goods, "placed"}
	shop.orders = append(shop.orders, order)
	return *order, shop.sendText(phone, fmt.Sprintf("Thank you for your order %d: %s.", order.ID, goods))
}

// State returns the state of an order.
func (shop *Shop) State(id int) string {
	shop.mutex.Lock()
	defer shop.mutex.Unlock()
	return shop.orders[id-1].State
}

// ServeHTTP receives a callback; a repeated one has no effect.
func (shop *Shop) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	var callback struct {
		Type    string
		Payload struct {
			Type    string
			Source  string
			Payload struct{ Text string }
		}
	}
	if err := json.NewDecoder(request.Body).Decode(&callback); err != nil {
		http.Error(writer, err.Error(), http.StatusBadRequest)
		return
	}
	shop.mutex.Lock()
	defer shop.mutex.Unlock()
	id := request.Header.Get("Waypost-Callback-Id")
	if shop.processed[id] {
		return
	}
	payload := callback.Payload
	if callback.Type == "message" && payload.Type == "text" && strings.EqualFold(payload.Payload.Text, "cancel") {
		if err := shop.cancel(payload.Source); err != nil {
			http.Error(writer, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	if shop.processed == nil {
		shop.processed = map[string]bool{}
	}
	shop.processed[id] = true
}

func (shop *Shop) cancel(phone string) error {
	for _, order := range shop.orders {
		if order.Phone == phone && order.State == "placed" {
			order.State = "cancelled"
			return shop.sendText(phone, fmt.Sprintf("Your order %d is cancelled.", order.ID))
		}
	}
	return nil
}

func (shop *Shop) sendText(phone, text string) error {
	message, _ := json.Marshal(map[string]string{"type": "text", "text": text})
	form := url.Values{
		"channel": {"whatsapp"}, "source": {shop.Env["SOURCE"]}, "src.name": {shop.Env["SRC_NAME"]},
		"destination": {phone}, "message": {string(message)},
	}
	request, err := http.NewRequest("POST", shop.Env["API_URL"]+"/wa/api/v1/msg", strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("apikey", shop.Env["API_KEY"])
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		body, _ := io.ReadAll(response.Body)
		return fmt.Errorf("the message was rejected: %s", body)
	}
	return nil
}
