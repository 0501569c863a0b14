// A member of kafkajs; arguments: BOOTSTRAP GROUP TOPIC ASSIGNOR NAME. Prints "NAME PARTITION OFFSET VALUE" for each record.
const { Kafka, logLevel, PartitionAssigners } = require('kafkajs')

const [bootstrap, groupId, topic, , name] = process.argv.slice(2)
const kafka = new Kafka({ clientId: name, brokers: bootstrap.split(','), logLevel: logLevel.WARN })
const consumer = kafka.consumer({
  groupId,
  sessionTimeout: 10000,
  heartbeatInterval: 1000,
  maxWaitTimeInMs: 500,
  partitionAssigners: [PartitionAssigners.roundRobin]
})

async function main () {
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({
    eachMessage: async ({ partition, message }) => {
      process.stdout.write(`${name} ${partition} ${message.offset} ${message.value}\n`)
    }
  })
}

process.on('SIGTERM', async () => {
  await consumer.disconnect()
  process.exit(0)
})
main().catch(error => {
  console.error(error)
  process.exit(1)
})
