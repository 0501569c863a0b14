// A transactional producer of kafkajs; arguments: BOOTSTRAP TRANSACTIONAL_ID TIMEOUT_MS. Its commands and answers are those of worker.py.
const { Kafka, logLevel } = require('kafkajs')
const readline = require('readline')

const [bootstrap, transactionalId, timeoutMs] = process.argv.slice(2)
const kafka = new Kafka({ clientId: transactionalId, brokers: bootstrap.split(','), logLevel: logLevel.NOTHING })
const producer = kafka.producer({
  transactionalId,
  transactionTimeout: Number(timeoutMs),
  idempotent: true,
  maxInFlightRequests: 1
})
let transaction = null

const commands = {
  init: () => producer.connect(),
  begin: async () => {
    transaction = await producer.transaction()
  },
  send: (topic, partition, value) =>
    transaction.send({ topic, acks: -1, messages: [{ partition: Number(partition), value }] }),
  offsets: (consumerGroupId, topic, partition, offset) =>
    transaction.sendOffsets({
      consumerGroupId,
      topics: [{ topic, partitions: [{ partition: Number(partition), offset }] }]
    }),
  commit: () => transaction.commit(),
  abort: () => transaction.abort()
}

async function main () {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [command, ...words] = line.split(' ')
    try {
      await commands[command](...words)
      console.log('ok')
    } catch (error) {
      console.error(error)
      console.log(`error ${error.type || error.name}`)
    }
  }
  process.exit(0)
}

main()
