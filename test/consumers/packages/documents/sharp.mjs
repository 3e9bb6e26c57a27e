import sharp from 'sharp'
import { use } from '../lib/use.mjs'

export default use('sharp', 'resizes a picture', { width: 4, height: 2 }, async () => {
  const image = sharp({ create: { width: 8, height: 4, channels: 3, background: 'red' } })
  const { width, height } = await sharp(await image.resize(4).png().toBuffer()).metadata()
  return { width, height }
})
