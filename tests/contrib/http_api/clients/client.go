// Uses the client that OpenAPI Generator makes of the description.
package main

import (
	"context"
	"fmt"
	"os"

	api "example.org/shop/api"
)

func main() {
	configuration := api.NewConfiguration()
	configuration.Servers = api.ServerConfigurations{{URL: os.Getenv("API_URL")}}
	client := api.NewAPIClient(configuration).DefaultAPI
	token := context.WithValue(context.Background(), api.ContextAccessToken, os.Getenv("SHOP_SECRET"))

	data := api.NewReceiptData(9007199254740993, []string{"tea"})
	put, _, err := client.PutReceipt(token).ReceiptData(*data).IdempotencyKey("go-7").Execute()
	check(err)
	ended, _, err := client.ResultReceipt(token, put.Jid).Wait(30).Execute()
	check(err)
	_, response, _ := client.GetJob(token, "none").Execute()
	fmt.Println(ended.GetResult(), response.StatusCode)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
