// Uses the client that openapi-typescript and openapi-fetch make of the description.
import createClient from "openapi-fetch";
import type { paths } from "./api.js";

const client = createClient<paths>({
  baseUrl: process.env.API_URL!,
  headers: { Authorization: `Bearer ${process.env.SHOP_SECRET}` },
});
const put = await client.POST("/klasses/shop.receipt", {
  body: { order: 7, lines: ["tea"] },
  params: { query: { priority: -1, tags: ["a", "b"] }, header: { "Idempotency-Key": "ts-7" } },
});
const jid: string = put.data!.jid;
const ended = await client.GET("/klasses/shop.receipt/results/{jid}", {
  params: { path: { jid }, query: { wait: 30 } },
});
const receipt: string | undefined = ended.data!.result;
const refused = await client.POST("/klasses/shop.receipt", {
  // @ts-expect-error: an order is a number
  body: { order: "7", lines: ["tea"] },
});
console.log(receipt, refused.error!.code);
