// Fetches all records of a node with js-libp2p and checks them: node fetch.mjs ADDRESS NETWORK-ID-IN-HEX
// Needs Node.js 22 and libp2p 3, @libp2p/tcp, @chainsafe/libp2p-noise, @chainsafe/libp2p-yamux, cborg.
// The messages are in protocol.md. It opens a stream with an empty log, so it answers every question with "none",
// and the other side sends all it has. Nothing waits for room: a program for large logs stores batch by batch.
import { createHash, createPublicKey, randomBytes, verify } from 'node:crypto'
import { inflateSync } from 'node:zlib'
import { noise } from '@chainsafe/libp2p-noise'
import { yamux } from '@chainsafe/libp2p-yamux'
import { tcp } from '@libp2p/tcp'
import { multiaddr } from '@multiformats/multiaddr'
import { decode } from 'cborg'
import { createLibp2p } from 'libp2p'

const [HELLO, RECONCILE, RECORDS, DONE] = [1, 2, 4, 5]
const FRAME_BYTES_MAX = 263168
const BATCH_BYTES_MAX = 262144
const PAYLOAD_TYPE = 'application/vnd.autoresearch.record.v1+cbor'
const ED25519_SPKI = Buffer.from('302a300506032b6570032100', 'hex')
const FIELD = 2n ** 255n - 19n
// The y of points of small order, which are neither keys nor the beginning of a signature; Node.js would take them.
const SMALL_ORDER = new Set([0n, 1n, FIELD - 1n, ...[
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a'
].map(hex => heightOf(Buffer.from(hex, 'hex')))])
const NO_IDS = Buffer.from('8000', 'hex') // one range up to the end, and no ids in it

function varint (number) {
  const bytes = []
  for (; number > 127; number >>>= 7) bytes.push((number & 127) | 128)
  return Buffer.from([...bytes, number])
}

function readVarint (data, at) {
  for (let number = 0, shift = 0; at < data.length; shift += 7) {
    const byte = data[at++]
    number += (byte & 127) * 2 ** shift
    if (byte < 128) return [number, at]
  }
}

const frame = (type, payload) => Buffer.concat([varint(1 + payload.length), Buffer.from([type]), payload])

function heightOf (point) {
  const littleEndian = Buffer.from(point).reverse().toString('hex')
  return BigInt('0x' + littleEndian) % 2n ** 255n
}

function isPoint (point) {
  const height = heightOf(point)
  return height < FIELD && !SMALL_ORDER.has(height)
}

function isSigned (raw, signature) {
  const { author } = decode(raw)
  if (!isPoint(author) || !isPoint(signature.subarray(0, 32))) return false
  const key = createPublicKey({ key: Buffer.concat([ED25519_SPKI, author]), format: 'der', type: 'spki' })
  const head = `DSSEv1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} ${raw.length} `
  return verify(null, Buffer.concat([Buffer.from(head), raw]), key, signature)
}

function * recordsOf (batch) {
  for (let at = 0; at < batch.length;) {
    const [length, start] = readVarint(batch, at)
    at = start + length + 64
    yield [batch.subarray(start, start + length), batch.subarray(start + length, at)]
  }
}

function * framesOf (held) {
  for (let head; (head = readVarint(held.data, 0)) && held.data.length >= head[0] + head[1];) {
    const [length, start] = head
    if (length < 1 || length > FRAME_BYTES_MAX) throw new Error(`a frame of ${length} bytes`)
    yield [held.data[start], held.data.subarray(start + 1, start + length)]
    held.data = held.data.subarray(start + length)
  }
}

async function fetchAll (stream, network) {
  const held = { data: Buffer.alloc(0) }
  const hello = Buffer.concat([Buffer.from([1]), network, randomBytes(16), varint(0), varint(0)])
  let count = 0
  stream.send(frame(HELLO, hello))
  for await (const chunk of stream) {
    held.data = Buffer.concat([held.data, chunk.subarray()])
    for (const [type, payload] of framesOf(held)) {
      if (type === RECONCILE) stream.send(frame(RECONCILE, NO_IDS))
      if (type === DONE) return count
      if (type !== RECORDS) continue
      for (const [raw, signature] of recordsOf(inflateSync(payload.subarray(1), { maxOutputLength: BATCH_BYTES_MAX }))) {
        if (!isSigned(raw, signature)) throw new Error('a record whose signature is not its author\'s')
        console.log(createHash('sha256').update(raw).digest('hex'), decode(raw).kind)
        count++
      }
    }
  }
  throw new Error('the stream ended early')
}

const [address, network] = process.argv.slice(2)
const node = await createLibp2p({ transports: [tcp()], connectionEncrypters: [noise()], streamMuxers: [yamux()] })
const stream = await node.dialProtocol(multiaddr(address), '/autoresearch/sync/1')
console.error(await fetchAll(stream, Buffer.from(network, 'hex')), 'records')
await stream.close()
await node.stop()
