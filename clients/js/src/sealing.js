// Two seals (HPKE, RFC 9180: X25519, HKDF-SHA256, AES-128-GCM), bound to the task; one size per task.
import { Aes128Gcm, CipherSuite, HkdfSha256 } from "@hpke/core";
import { DhkemX25519HkdfSha256 } from "@hpke/dhkem-x25519";

const VERSION = 1;
const ID_BYTES = 16;
const suite = new CipherSuite({ kem: new DhkemX25519HkdfSha256(), kdf: new HkdfSha256(), aead: new Aes128Gcm() });
const ascii = (text) => new TextEncoder().encode(text);
const TO_SHUFFLER = ascii("shuffledp 1 to the shuffler\0");
const TO_ANALYST = ascii("shuffledp 1 to the analyst\0");

export const newId = () => crypto.getRandomValues(new Uint8Array(ID_BYTES));

/** What is submitted: version, name of the key, seal to the shuffler of (id, seal to the analyst of the report). */
export async function seal(report, taskId, analyst, shufflerKey, id) {
  const inner = await sealed(report, analyst, concatenated(TO_ANALYST, taskId));
  const outer = await sealed(concatenated(id, inner), shufflerKey, concatenated(TO_SHUFFLER, taskId));
  return concatenated(new Uint8Array([VERSION]), (await sha256(shufflerKey)).subarray(0, 8), outer);
}

async function sealed(text, key, info) {
  const recipientPublicKey = await suite.kem.deserializePublicKey(key);
  const { enc, ct } = await suite.seal({ recipientPublicKey, info }, text);
  return concatenated(new Uint8Array(enc), new Uint8Array(ct));
}

export async function sha256(bytes) {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

export function concatenated(...parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  parts.reduce((at, part) => (whole.set(part, at), at + part.length), 0);
  return whole;
}
