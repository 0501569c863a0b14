// Connects as cells say, one JSON line each on stdin, and prints an outcome a line: `ok`, or the error.
const fs = require("fs")
const { Kafka, logLevel } = require("kafkajs")

const TIMEOUT_MS = 6000
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

// An access token that nobody has signed.
function token(cell) {
  const now = Math.floor(Date.now() / 1000)
  const claims = { sub: cell.user, iat: Math.min(now, now + cell.token_s - 1), exp: now + cell.token_s }
  const parts = [{ alg: "none" }, claims].map((part) =>
    Buffer.from(JSON.stringify(part)).toString("base64url"),
  )
  return `${parts.join(".")}.`
}

function sasl(cell) {
  if (!cell.mechanism) return undefined
  const mechanism = cell.mechanism.toLowerCase()
  if (mechanism === "oauthbearer") {
    return { mechanism, oauthBearerProvider: async () => ({ value: token(cell) }) }
  }
  return { mechanism, username: cell.user, password: cell.password }
}

function tls(cell) {
  if (!cell.protocol.endsWith("SSL")) return false
  const found = { ca: [fs.readFileSync(cell.authority)], servername: "localhost" }
  if (cell.certificate) {
    found.key = found.cert = fs.readFileSync(cell.certificate)
  }
  return found
}

async function outcome(cell) {
  const kafka = new Kafka({
    brokers: [cell.address],
    ssl: tls(cell),
    sasl: sasl(cell),
    connectionTimeout: TIMEOUT_MS,
    authenticationTimeout: TIMEOUT_MS,
    requestTimeout: TIMEOUT_MS,
    retry: { retries: 0 },
    logLevel: logLevel.NOTHING,
  })
  const admin = kafka.admin()
  try {
    await admin.connect()
    const until = Date.now() + cell.duration_ms
    for (;;) {
      await admin.describeCluster()
      if (Date.now() >= until) return "ok"
      await pause(200)
    }
  } catch (error) {
    return `${error.name}: ${error.message}`
  } finally {
    await admin.disconnect().catch(() => undefined)
  }
}

const cells = fs.readFileSync(0, "utf8").trim().split("\n").map((line) => JSON.parse(line))
Promise.all(cells.map(outcome)).then((outcomes) => {
  for (const each of outcomes) console.log(JSON.stringify(each))
  process.exit(0)
})
