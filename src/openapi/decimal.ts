/** Decides multiples by decimal arithmetic: 19.99 is a multiple of 0.01, although `19.99 / 0.01` is no integer in binary. */

/** Whether `value` is a multiple of `divisor`, as both are written in JSON. `divisor` is greater than 0. */
export function isMultipleOf(value: number, divisor: number): boolean {
  if (Number.isSafeInteger(value) && Number.isSafeInteger(divisor)) return value % divisor === 0
  if (!Number.isFinite(value) || !Number.isFinite(divisor)) return false
  const [one, other] = [toDecimal(value), toDecimal(divisor)]
  const exponent = Math.min(one.exponent, other.exponent)
  const scaled = ({ digits, exponent: own }: Decimal) => digits * 10n ** BigInt(own - exponent)
  return scaled(one) % scaled(other) === 0n
}

/** `digits` times ten to the power of `exponent`. */
interface Decimal {
  digits: bigint
  exponent: number
}

/** JavaScript writes the shortest decimal that stands for the number, for example `19.99` or `1e-7`. */
function toDecimal(value: number): Decimal {
  const [mantissa = '', power = '0'] = String(value).split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  return { digits: BigInt(whole + fraction), exponent: Number(power) - fraction.length }
}
