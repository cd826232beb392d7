// A Llama: 4 layers, width 384, 6 heads on 2 of key and value, feed-forward width 1024, 256 tokens, vocabulary 8192. Pre-norm
// blocks by the mean square, rotary positions, gated feed-forward layers, no biases, untied head.
//   dgc llama.mlir --batch 4 -o llama.dgx && dgrun llama.dgx --data x=randint:8192:64x256 --data y=randint:8192:64x256 --steps 10
module attributes {dg.optimizer = "adamw:lr=0.0001"} {
  dg.graph @loss(%x: tensor<?x256xi32>, %y: tensor<?x256xi32>) {
    %embed_w = dg.parameter "embed.weight" tensor<8192x384xf32> normal 0.02
    %embed = dg.embedding %embed_w, %x

    // Angles: place · 10000^(-pair / 32).
    %places = dg.iota {dim = 0 : i64, type = tensor<256x32xf32>}
    %logarithms = dg.iota {dim = 1 : i64, type = tensor<256x32xf32>, step = -0.28782313662425574}
    %frequencies = dg.exp %logarithms
    %angles = dg.mul %places, %frequencies
    %cos = dg.cos %angles
    %sin = dg.sin %angles
    // Block 0: attention.
    %b0_ln1_w = dg.parameter "blocks.0.ln1.weight" tensor<384xf32> constant 1.0
    %b0_ln1 = dg.rms_norm %embed, %b0_ln1_w
    %b0_q_w = dg.parameter "blocks.0.attn.q.weight" tensor<384x384xf32> normal 0.02
    %b0_q = dg.linear %b0_ln1, %b0_q_w
    %b0_rq = dg.rotary %b0_q, %cos, %sin {heads = 6}
    %b0_k_w = dg.parameter "blocks.0.attn.k.weight" tensor<128x384xf32> normal 0.02
    %b0_k = dg.linear %b0_ln1, %b0_k_w
    %b0_rk = dg.rotary %b0_k, %cos, %sin {heads = 2}
    %b0_v_w = dg.parameter "blocks.0.attn.v.weight" tensor<128x384xf32> normal 0.02
    %b0_v = dg.linear %b0_ln1, %b0_v_w
    %b0_attn = dg.attention %b0_rq, %b0_rk, %b0_v {heads = 6, kv_heads = 2, causal}
    %b0_o_w = dg.parameter "blocks.0.attn.o.weight" tensor<384x384xf32> normal 0.02
    %b0_o = dg.linear %b0_attn, %b0_o_w
    %b0_mid = dg.add %embed, %b0_o
    // Block 0: feed-forward.
    %b0_ln2_w = dg.parameter "blocks.0.ln2.weight" tensor<384xf32> constant 1.0
    %b0_ln2 = dg.rms_norm %b0_mid, %b0_ln2_w
    %b0_gate_w = dg.parameter "blocks.0.mlp.gate.weight" tensor<1024x384xf32> normal 0.02
    %b0_gate = dg.linear %b0_ln2, %b0_gate_w
    %b0_act = dg.silu %b0_gate
    %b0_up_w = dg.parameter "blocks.0.mlp.up.weight" tensor<1024x384xf32> normal 0.02
    %b0_up = dg.linear %b0_ln2, %b0_up_w
    %b0_wide = dg.mul %b0_act, %b0_up
    %b0_down_w = dg.parameter "blocks.0.mlp.down.weight" tensor<384x1024xf32> normal 0.02
    %b0_down = dg.linear %b0_wide, %b0_down_w
    %b0_out = dg.add %b0_mid, %b0_down

    // Block 1: attention.
    %b1_ln1_w = dg.parameter "blocks.1.ln1.weight" tensor<384xf32> constant 1.0
    %b1_ln1 = dg.rms_norm %b0_out, %b1_ln1_w
    %b1_q_w = dg.parameter "blocks.1.attn.q.weight" tensor<384x384xf32> normal 0.02
    %b1_q = dg.linear %b1_ln1, %b1_q_w
    %b1_rq = dg.rotary %b1_q, %cos, %sin {heads = 6}
    %b1_k_w = dg.parameter "blocks.1.attn.k.weight" tensor<128x384xf32> normal 0.02
    %b1_k = dg.linear %b1_ln1, %b1_k_w
    %b1_rk = dg.rotary %b1_k, %cos, %sin {heads = 2}
    %b1_v_w = dg.parameter "blocks.1.attn.v.weight" tensor<128x384xf32> normal 0.02
    %b1_v = dg.linear %b1_ln1, %b1_v_w
    %b1_attn = dg.attention %b1_rq, %b1_rk, %b1_v {heads = 6, kv_heads = 2, causal}
    %b1_o_w = dg.parameter "blocks.1.attn.o.weight" tensor<384x384xf32> normal 0.02
    %b1_o = dg.linear %b1_attn, %b1_o_w
    %b1_mid = dg.add %b0_out, %b1_o
    // Block 1: feed-forward.
    %b1_ln2_w = dg.parameter "blocks.1.ln2.weight" tensor<384xf32> constant 1.0
    %b1_ln2 = dg.rms_norm %b1_mid, %b1_ln2_w
    %b1_gate_w = dg.parameter "blocks.1.mlp.gate.weight" tensor<1024x384xf32> normal 0.02
    %b1_gate = dg.linear %b1_ln2, %b1_gate_w
    %b1_act = dg.silu %b1_gate
    %b1_up_w = dg.parameter "blocks.1.mlp.up.weight" tensor<1024x384xf32> normal 0.02
    %b1_up = dg.linear %b1_ln2, %b1_up_w
    %b1_wide = dg.mul %b1_act, %b1_up
    %b1_down_w = dg.parameter "blocks.1.mlp.down.weight" tensor<384x1024xf32> normal 0.02
    %b1_down = dg.linear %b1_wide, %b1_down_w
    %b1_out = dg.add %b1_mid, %b1_down

    // Block 2: attention.
    %b2_ln1_w = dg.parameter "blocks.2.ln1.weight" tensor<384xf32> constant 1.0
    %b2_ln1 = dg.rms_norm %b1_out, %b2_ln1_w
    %b2_q_w = dg.parameter "blocks.2.attn.q.weight" tensor<384x384xf32> normal 0.02
    %b2_q = dg.linear %b2_ln1, %b2_q_w
    %b2_rq = dg.rotary %b2_q, %cos, %sin {heads = 6}
    %b2_k_w = dg.parameter "blocks.2.attn.k.weight" tensor<128x384xf32> normal 0.02
    %b2_k = dg.linear %b2_ln1, %b2_k_w
    %b2_rk = dg.rotary %b2_k, %cos, %sin {heads = 2}
    %b2_v_w = dg.parameter "blocks.2.attn.v.weight" tensor<128x384xf32> normal 0.02
    %b2_v = dg.linear %b2_ln1, %b2_v_w
    %b2_attn = dg.attention %b2_rq, %b2_rk, %b2_v {heads = 6, kv_heads = 2, causal}
    %b2_o_w = dg.parameter "blocks.2.attn.o.weight" tensor<384x384xf32> normal 0.02
    %b2_o = dg.linear %b2_attn, %b2_o_w
    %b2_mid = dg.add %b1_out, %b2_o
    // Block 2: feed-forward.
    %b2_ln2_w = dg.parameter "blocks.2.ln2.weight" tensor<384xf32> constant 1.0
    %b2_ln2 = dg.rms_norm %b2_mid, %b2_ln2_w
    %b2_gate_w = dg.parameter "blocks.2.mlp.gate.weight" tensor<1024x384xf32> normal 0.02
    %b2_gate = dg.linear %b2_ln2, %b2_gate_w
    %b2_act = dg.silu %b2_gate
    %b2_up_w = dg.parameter "blocks.2.mlp.up.weight" tensor<1024x384xf32> normal 0.02
    %b2_up = dg.linear %b2_ln2, %b2_up_w
    %b2_wide = dg.mul %b2_act, %b2_up
    %b2_down_w = dg.parameter "blocks.2.mlp.down.weight" tensor<384x1024xf32> normal 0.02
    %b2_down = dg.linear %b2_wide, %b2_down_w
    %b2_out = dg.add %b2_mid, %b2_down

    // Block 3: attention.
    %b3_ln1_w = dg.parameter "blocks.3.ln1.weight" tensor<384xf32> constant 1.0
    %b3_ln1 = dg.rms_norm %b2_out, %b3_ln1_w
    %b3_q_w = dg.parameter "blocks.3.attn.q.weight" tensor<384x384xf32> normal 0.02
    %b3_q = dg.linear %b3_ln1, %b3_q_w
    %b3_rq = dg.rotary %b3_q, %cos, %sin {heads = 6}
    %b3_k_w = dg.parameter "blocks.3.attn.k.weight" tensor<128x384xf32> normal 0.02
    %b3_k = dg.linear %b3_ln1, %b3_k_w
    %b3_rk = dg.rotary %b3_k, %cos, %sin {heads = 2}
    %b3_v_w = dg.parameter "blocks.3.attn.v.weight" tensor<128x384xf32> normal 0.02
    %b3_v = dg.linear %b3_ln1, %b3_v_w
    %b3_attn = dg.attention %b3_rq, %b3_rk, %b3_v {heads = 6, kv_heads = 2, causal}
    %b3_o_w = dg.parameter "blocks.3.attn.o.weight" tensor<384x384xf32> normal 0.02
    %b3_o = dg.linear %b3_attn, %b3_o_w
    %b3_mid = dg.add %b2_out, %b3_o
    // Block 3: feed-forward.
    %b3_ln2_w = dg.parameter "blocks.3.ln2.weight" tensor<384xf32> constant 1.0
    %b3_ln2 = dg.rms_norm %b3_mid, %b3_ln2_w
    %b3_gate_w = dg.parameter "blocks.3.mlp.gate.weight" tensor<1024x384xf32> normal 0.02
    %b3_gate = dg.linear %b3_ln2, %b3_gate_w
    %b3_act = dg.silu %b3_gate
    %b3_up_w = dg.parameter "blocks.3.mlp.up.weight" tensor<1024x384xf32> normal 0.02
    %b3_up = dg.linear %b3_ln2, %b3_up_w
    %b3_wide = dg.mul %b3_act, %b3_up
    %b3_down_w = dg.parameter "blocks.3.mlp.down.weight" tensor<384x1024xf32> normal 0.02
    %b3_down = dg.linear %b3_wide, %b3_down_w
    %b3_out = dg.add %b3_mid, %b3_down

    %ln_w = dg.parameter "ln.weight" tensor<384xf32> constant 1.0
    %ln = dg.rms_norm %b3_out, %ln_w
    %head_w = dg.parameter "head.weight" tensor<8192x384xf32> normal 0.02
    %logits = dg.linear %ln, %head_w
    %loss = dg.cross_entropy %logits, %y
    dg.return %loss
  }
}
