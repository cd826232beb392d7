// A GPT: 4 layers, width 384, 6 heads, 256 tokens, vocabulary 8192. Pre-norm blocks, learned positions, untied head.
//   dgc gpt.mlir --batch 4 -o gpt.dgx && dgrun gpt.dgx --data x=randint:8192:64x256 --data y=randint:8192:64x256 --steps 10
module attributes {dg.optimizer = "adamw:lr=0.0001"} {
  dg.graph @loss(%x: tensor<?x256xi32>, %y: tensor<?x256xi32>) {
    %embed_w = dg.parameter "embed.weight" tensor<8192x384xf32> normal 0.02
    %pos_w = dg.parameter "pos.weight" tensor<256x384xf32> normal 0.02
    %embed = dg.embedding %embed_w, %x
    %x0 = dg.add %embed, %pos_w

    // Block 0: attention.
    %b0_ln1_w = dg.parameter "blocks.0.ln1.weight" tensor<384xf32> constant 1.0
    %b0_ln1_b = dg.parameter "blocks.0.ln1.bias" tensor<384xf32> constant 0.0
    %b0_ln1 = dg.layer_norm %x0, %b0_ln1_w, %b0_ln1_b
    %b0_q_w = dg.parameter "blocks.0.attn.q.weight" tensor<384x384xf32> normal 0.02
    %b0_q_b = dg.parameter "blocks.0.attn.q.bias" tensor<384xf32> constant 0.0
    %b0_q = dg.linear %b0_ln1, %b0_q_w, %b0_q_b
    %b0_k_w = dg.parameter "blocks.0.attn.k.weight" tensor<384x384xf32> normal 0.02
    %b0_k_b = dg.parameter "blocks.0.attn.k.bias" tensor<384xf32> constant 0.0
    %b0_k = dg.linear %b0_ln1, %b0_k_w, %b0_k_b
    %b0_v_w = dg.parameter "blocks.0.attn.v.weight" tensor<384x384xf32> normal 0.02
    %b0_v_b = dg.parameter "blocks.0.attn.v.bias" tensor<384xf32> constant 0.0
    %b0_v = dg.linear %b0_ln1, %b0_v_w, %b0_v_b
    %b0_attn = dg.attention %b0_q, %b0_k, %b0_v {heads = 6, causal}
    %b0_o_w = dg.parameter "blocks.0.attn.o.weight" tensor<384x384xf32> normal 0.02
    %b0_o_b = dg.parameter "blocks.0.attn.o.bias" tensor<384xf32> constant 0.0
    %b0_o = dg.linear %b0_attn, %b0_o_w, %b0_o_b
    %b0_mid = dg.add %x0, %b0_o
    // Block 0: feed-forward.
    %b0_ln2_w = dg.parameter "blocks.0.ln2.weight" tensor<384xf32> constant 1.0
    %b0_ln2_b = dg.parameter "blocks.0.ln2.bias" tensor<384xf32> constant 0.0
    %b0_ln2 = dg.layer_norm %b0_mid, %b0_ln2_w, %b0_ln2_b
    %b0_up_w = dg.parameter "blocks.0.mlp.up.weight" tensor<1536x384xf32> normal 0.02
    %b0_up_b = dg.parameter "blocks.0.mlp.up.bias" tensor<1536xf32> constant 0.0
    %b0_up = dg.linear %b0_ln2, %b0_up_w, %b0_up_b
    %b0_act = dg.gelu %b0_up
    %b0_down_w = dg.parameter "blocks.0.mlp.down.weight" tensor<384x1536xf32> normal 0.02
    %b0_down_b = dg.parameter "blocks.0.mlp.down.bias" tensor<384xf32> constant 0.0
    %b0_down = dg.linear %b0_act, %b0_down_w, %b0_down_b
    %b0_out = dg.add %b0_mid, %b0_down

    // Block 1: attention.
    %b1_ln1_w = dg.parameter "blocks.1.ln1.weight" tensor<384xf32> constant 1.0
    %b1_ln1_b = dg.parameter "blocks.1.ln1.bias" tensor<384xf32> constant 0.0
    %b1_ln1 = dg.layer_norm %b0_out, %b1_ln1_w, %b1_ln1_b
    %b1_q_w = dg.parameter "blocks.1.attn.q.weight" tensor<384x384xf32> normal 0.02
    %b1_q_b = dg.parameter "blocks.1.attn.q.bias" tensor<384xf32> constant 0.0
    %b1_q = dg.linear %b1_ln1, %b1_q_w, %b1_q_b
    %b1_k_w = dg.parameter "blocks.1.attn.k.weight" tensor<384x384xf32> normal 0.02
    %b1_k_b = dg.parameter "blocks.1.attn.k.bias" tensor<384xf32> constant 0.0
    %b1_k = dg.linear %b1_ln1, %b1_k_w, %b1_k_b
    %b1_v_w = dg.parameter "blocks.1.attn.v.weight" tensor<384x384xf32> normal 0.02
    %b1_v_b = dg.parameter "blocks.1.attn.v.bias" tensor<384xf32> constant 0.0
    %b1_v = dg.linear %b1_ln1, %b1_v_w, %b1_v_b
    %b1_attn = dg.attention %b1_q, %b1_k, %b1_v {heads = 6, causal}
    %b1_o_w = dg.parameter "blocks.1.attn.o.weight" tensor<384x384xf32> normal 0.02
    %b1_o_b = dg.parameter "blocks.1.attn.o.bias" tensor<384xf32> constant 0.0
    %b1_o = dg.linear %b1_attn, %b1_o_w, %b1_o_b
    %b1_mid = dg.add %b0_out, %b1_o
    // Block 1: feed-forward.
    %b1_ln2_w = dg.parameter "blocks.1.ln2.weight" tensor<384xf32> constant 1.0
    %b1_ln2_b = dg.parameter "blocks.1.ln2.bias" tensor<384xf32> constant 0.0
    %b1_ln2 = dg.layer_norm %b1_mid, %b1_ln2_w, %b1_ln2_b
    %b1_up_w = dg.parameter "blocks.1.mlp.up.weight" tensor<1536x384xf32> normal 0.02
    %b1_up_b = dg.parameter "blocks.1.mlp.up.bias" tensor<1536xf32> constant 0.0
    %b1_up = dg.linear %b1_ln2, %b1_up_w, %b1_up_b
    %b1_act = dg.gelu %b1_up
    %b1_down_w = dg.parameter "blocks.1.mlp.down.weight" tensor<384x1536xf32> normal 0.02
    %b1_down_b = dg.parameter "blocks.1.mlp.down.bias" tensor<384xf32> constant 0.0
    %b1_down = dg.linear %b1_act, %b1_down_w, %b1_down_b
    %b1_out = dg.add %b1_mid, %b1_down

    // Block 2: attention.
    %b2_ln1_w = dg.parameter "blocks.2.ln1.weight" tensor<384xf32> constant 1.0
    %b2_ln1_b = dg.parameter "blocks.2.ln1.bias" tensor<384xf32> constant 0.0
    %b2_ln1 = dg.layer_norm %b1_out, %b2_ln1_w, %b2_ln1_b
    %b2_q_w = dg.parameter "blocks.2.attn.q.weight" tensor<384x384xf32> normal 0.02
    %b2_q_b = dg.parameter "blocks.2.attn.q.bias" tensor<384xf32> constant 0.0
    %b2_q = dg.linear %b2_ln1, %b2_q_w, %b2_q_b
    %b2_k_w = dg.parameter "blocks.2.attn.k.weight" tensor<384x384xf32> normal 0.02
    %b2_k_b = dg.parameter "blocks.2.attn.k.bias" tensor<384xf32> constant 0.0
    %b2_k = dg.linear %b2_ln1, %b2_k_w, %b2_k_b
    %b2_v_w = dg.parameter "blocks.2.attn.v.weight" tensor<384x384xf32> normal 0.02
    %b2_v_b = dg.parameter "blocks.2.attn.v.bias" tensor<384xf32> constant 0.0
    %b2_v = dg.linear %b2_ln1, %b2_v_w, %b2_v_b
    %b2_attn = dg.attention %b2_q, %b2_k, %b2_v {heads = 6, causal}
    %b2_o_w = dg.parameter "blocks.2.attn.o.weight" tensor<384x384xf32> normal 0.02
    %b2_o_b = dg.parameter "blocks.2.attn.o.bias" tensor<384xf32> constant 0.0
    %b2_o = dg.linear %b2_attn, %b2_o_w, %b2_o_b
    %b2_mid = dg.add %b1_out, %b2_o
    // Block 2: feed-forward.
    %b2_ln2_w = dg.parameter "blocks.2.ln2.weight" tensor<384xf32> constant 1.0
    %b2_ln2_b = dg.parameter "blocks.2.ln2.bias" tensor<384xf32> constant 0.0
    %b2_ln2 = dg.layer_norm %b2_mid, %b2_ln2_w, %b2_ln2_b
    %b2_up_w = dg.parameter "blocks.2.mlp.up.weight" tensor<1536x384xf32> normal 0.02
    %b2_up_b = dg.parameter "blocks.2.mlp.up.bias" tensor<1536xf32> constant 0.0
    %b2_up = dg.linear %b2_ln2, %b2_up_w, %b2_up_b
    %b2_act = dg.gelu %b2_up
    %b2_down_w = dg.parameter "blocks.2.mlp.down.weight" tensor<384x1536xf32> normal 0.02
    %b2_down_b = dg.parameter "blocks.2.mlp.down.bias" tensor<384xf32> constant 0.0
    %b2_down = dg.linear %b2_act, %b2_down_w, %b2_down_b
    %b2_out = dg.add %b2_mid, %b2_down

    // Block 3: attention.
    %b3_ln1_w = dg.parameter "blocks.3.ln1.weight" tensor<384xf32> constant 1.0
    %b3_ln1_b = dg.parameter "blocks.3.ln1.bias" tensor<384xf32> constant 0.0
    %b3_ln1 = dg.layer_norm %b2_out, %b3_ln1_w, %b3_ln1_b
    %b3_q_w = dg.parameter "blocks.3.attn.q.weight" tensor<384x384xf32> normal 0.02
    %b3_q_b = dg.parameter "blocks.3.attn.q.bias" tensor<384xf32> constant 0.0
    %b3_q = dg.linear %b3_ln1, %b3_q_w, %b3_q_b
    %b3_k_w = dg.parameter "blocks.3.attn.k.weight" tensor<384x384xf32> normal 0.02
    %b3_k_b = dg.parameter "blocks.3.attn.k.bias" tensor<384xf32> constant 0.0
    %b3_k = dg.linear %b3_ln1, %b3_k_w, %b3_k_b
    %b3_v_w = dg.parameter "blocks.3.attn.v.weight" tensor<384x384xf32> normal 0.02
    %b3_v_b = dg.parameter "blocks.3.attn.v.bias" tensor<384xf32> constant 0.0
    %b3_v = dg.linear %b3_ln1, %b3_v_w, %b3_v_b
    %b3_attn = dg.attention %b3_q, %b3_k, %b3_v {heads = 6, causal}
    %b3_o_w = dg.parameter "blocks.3.attn.o.weight" tensor<384x384xf32> normal 0.02
    %b3_o_b = dg.parameter "blocks.3.attn.o.bias" tensor<384xf32> constant 0.0
    %b3_o = dg.linear %b3_attn, %b3_o_w, %b3_o_b
    %b3_mid = dg.add %b2_out, %b3_o
    // Block 3: feed-forward.
    %b3_ln2_w = dg.parameter "blocks.3.ln2.weight" tensor<384xf32> constant 1.0
    %b3_ln2_b = dg.parameter "blocks.3.ln2.bias" tensor<384xf32> constant 0.0
    %b3_ln2 = dg.layer_norm %b3_mid, %b3_ln2_w, %b3_ln2_b
    %b3_up_w = dg.parameter "blocks.3.mlp.up.weight" tensor<1536x384xf32> normal 0.02
    %b3_up_b = dg.parameter "blocks.3.mlp.up.bias" tensor<1536xf32> constant 0.0
    %b3_up = dg.linear %b3_ln2, %b3_up_w, %b3_up_b
    %b3_act = dg.gelu %b3_up
    %b3_down_w = dg.parameter "blocks.3.mlp.down.weight" tensor<384x1536xf32> normal 0.02
    %b3_down_b = dg.parameter "blocks.3.mlp.down.bias" tensor<384xf32> constant 0.0
    %b3_down = dg.linear %b3_act, %b3_down_w, %b3_down_b
    %b3_out = dg.add %b3_mid, %b3_down

    %ln_w = dg.parameter "ln.weight" tensor<384xf32> constant 1.0
    %ln_b = dg.parameter "ln.bias" tensor<384xf32> constant 0.0
    %ln = dg.layer_norm %b3_out, %ln_w, %ln_b
    %head_w = dg.parameter "head.weight" tensor<8192x384xf32> normal 0.02
    %logits = dg.linear %ln, %head_w
    %loss = dg.cross_entropy %logits, %y
    dg.return %loss
  }
}
