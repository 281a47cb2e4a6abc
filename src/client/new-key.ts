/** An `Idempotency-Key`, unique among the keys of this agent for a day. It is no secret, and so not worth loading the cryptography for. */
export function newKey(): string {
  const random = () => Math.random().toString(36).slice(2)
  return `${Date.now().toString(36)}-${random()}${random()}`
}
