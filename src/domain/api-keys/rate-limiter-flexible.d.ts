/** The parts of rate-limiter-flexible that are used, each from its own file: all of them take 70 ms more to load. */
declare module 'rate-limiter-flexible/lib/RateLimiterStoreAbstract.js' {
  export { RateLimiterStoreAbstract as default } from 'rate-limiter-flexible'
}
declare module 'rate-limiter-flexible/lib/RateLimiterMemory.js' {
  export { RateLimiterMemory as default } from 'rate-limiter-flexible'
}
declare module 'rate-limiter-flexible/lib/RateLimiterRes.js' {
  export { RateLimiterRes as default } from 'rate-limiter-flexible'
}
